/** One cell of the matrix: a client with everything a host can give it, and what it heard beside the answers. */
import { type Client, type ConnectOptions, connect, type LogMessage, type Target } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/server/index.ts'

export interface Cell {
  readonly client: Client
  readonly revision: RevisionId
  readonly logs: LogMessage[]
}

const order: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', 'draft-2026-v1', '2026-07-28']

/** Whether a revision is at least as new as another; the dialect is newer than none. */
export function since(revision: RevisionId, first: RevisionId): boolean {
  return revision !== 's3' && order.indexOf(revision) >= order.indexOf(first)
}

export function isStateless(revision: RevisionId): boolean {
  return since(revision, 'draft-2026-v1')
}

/** Connects with answers to all that the fixture asks. */
export async function openCell(target: Target, revision: RevisionId, options: ConnectOptions): Promise<Cell> {
  const logs: LogMessage[] = []
  const client = await connect(target, {
    onElicit: question =>
      question.mode === 'form' ? { action: 'accept', content: { fish: 'cod', count: 2, confirm: true } } : { action: 'accept' },
    onSample: () => ({ role: 'assistant', content: { type: 'text', text: 'dish' }, model: 'the-model' }),
    roots: [{ uri: 'file:///home/ada', name: 'home' }],
    onLog: message => logs.push(message),
    timeout: '8s',
    ...options,
  })
  return { client, revision, logs }
}
