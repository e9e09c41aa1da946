/** For tests of turns: a real host with real servers in memory, a model that calls what it is told to, and an approver that remembers. */
import { onTestFinished } from 'vitest'
import { createHost } from '../../src/host/create.ts'
import type { Host, HostOptions } from '../../src/host/host.ts'
import { type ScriptedModel, scripted } from '../../src/host/models/scripted.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import type { ApprovalAnswer, ApprovalQuestion } from '../../src/policy/approvals/question.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export interface Wanted {
  readonly name: string
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** A server that ends with the test. */
export function server(name: string): Server {
  const made = createServer({ name, version: '1.0.0' })
  onTestFinished(() => made.close())
  return made
}

/** A connection to it, each time anew. */
export function near(to: Server): () => Connection {
  return () => {
    const [here, there] = memoryPair()
    to.acceptor.accept(there)
    return here
  }
}

/** A model that makes these calls, one in each turn, and then says that it is done. */
export function calling(wanted: Wanted[]): ScriptedModel {
  return scripted(({ messages }) => {
    const next = messages.at(-1)?.role === 'tool' ? undefined : wanted.shift()
    return next === undefined ? 'Done.' : { calls: [next] }
  })
}

/** A host that ends with the test, and has connected its servers. */
export async function opened(options: HostOptions): Promise<Host> {
  const host = await createHost(options)
  onTestFinished(() => host.close())
  return host
}

/** Answers questions about tools, scopes, events and inferences; feature sets and definitions are always fine. */
export function approver(answer: (question: ApprovalQuestion) => ApprovalAnswer | Promise<ApprovalAnswer>) {
  const questions: ApprovalQuestion[] = []
  const onApproval: NonNullable<HostOptions['onApproval']> = question => {
    if (question.about === 'set' || question.about === 'definition') return true
    questions.push(question)
    return answer(question)
  }
  return { questions, onApproval }
}

/** Says it, and gives what came of the calls of the turn. */
export async function said(host: Host, text = 'Go', conversation = 'c1'): Promise<readonly string[]> {
  const turn = await host.conversation(conversation).send(text)
  await turn.done
  return turn.calls.map(({ outcome }) => outcome?.status ?? 'none')
}
