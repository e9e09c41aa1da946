/** Frames that are right, from our own transcripts: what a client says at each revision, and what a server answers to which method. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../../src/jsonrpc/message.ts'
import { fillValues } from '../../src/recording/difference.ts'
import { parseTranscript } from '../../src/recording/transcript.ts'
import type { RevisionId } from '../../src/revisions/index.ts'

export type Frame = Readonly<Record<string, unknown>>

export interface Corpus {
  /** Requests and notifications of clients, answers to questions among them. */
  readonly said: readonly Frame[]
  /** Results by the method that they answered. */
  readonly results: ReadonlyMap<string, readonly unknown[]>
  /** Requests and notifications of servers. */
  readonly pushed: readonly Frame[]
}

const known = new Map<RevisionId, Corpus>()

export function corpusOf(revision: RevisionId): Corpus {
  let corpus = known.get(revision)
  if (corpus === undefined) {
    corpus = readCorpus(revision)
    known.set(revision, corpus)
  }
  return corpus
}

function readCorpus(revision: RevisionId): Corpus {
  const folder = join(import.meta.dirname, '..', 'transcripts', revision)
  const said: Frame[] = []
  const pushed: Frame[] = []
  const results = new Map<string, unknown[]>()
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.txt'))
  for (const name of names.sort()) {
    const { steps, values } = parseTranscript(readFileSync(join(folder, name), 'utf8'))
    const asked = new Map<unknown, string>()
    for (const step of steps) {
      if (step.kind === 'drop') continue
      const frame = fillValues(step.value, values)
      for (const each of Array.isArray(frame) ? frame : [frame]) {
        if (!isRecord(each)) continue
        const { id, method, result } = each
        if (step.from === 'client') {
          said.push(each)
          if (typeof method === 'string') asked.set(id, method)
        } else if (typeof method === 'string') pushed.push(each)
        else if (result !== undefined) {
          const answered = asked.get(id) ?? 'unknown'
          results.set(answered, [...(results.get(answered) ?? []), result])
        }
      }
    }
  }
  return { said, results, pushed }
}
