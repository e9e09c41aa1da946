/** What a host answers when a server asks: for each server the handlers that its connection is opened with. */
import type { LiveHandlers } from '../../../client/live-handlers.ts'
import type { OnElicit, OnQuestionRefused } from '../../../features/mcp/elicitation/client.ts'
import type { Root } from '../../../features/mcp/roots/messages.ts'
import type { OnSample } from '../../../features/mcp/sampling/client.ts'
import { askPermission, outcomeNoter } from '../permission.ts'
import type { LoopParts } from '../ports.ts'
import { elicitationFor, type OnServerQuestion, refusedPagesOf } from './elicitation.ts'
import { inferenceFor } from './inference.ts'
import { type OnSampleReview, samplingFor } from './sampling.ts'

export interface AnswersOptions {
  /** Shows the user what a server wants to sample, where the policy says `ask`. */
  readonly onSampleReview?: OnSampleReview
  /** Asks the user; without it servers are told that nobody can be asked. */
  readonly onElicit?: OnServerQuestion
  /** Folders that servers may know of, as `file:` addresses. Which servers do, the policy decides. */
  readonly roots?: readonly Root[]
  /** Which model answers inference requests: the id of a model by `server/set`, `server`, or `set`. */
  readonly routes?: Readonly<Record<string, string>>
}

/** Options of a connection. */
interface ServerAnswers {
  readonly onSample: OnSample
  readonly sampleTools: true
  readonly onElicit?: OnElicit
  readonly onQuestionRefused: OnQuestionRefused
  readonly roots: () => Promise<readonly Root[]>
  readonly live: Pick<LiveHandlers, 'onInfer' | 'modelInfo'>
}

export interface Answers {
  answersFor(server: string): ServerAnswers
  setRoots(roots: readonly Root[]): void
}

export function createAnswers(parts: LoopParts, options: AnswersOptions): Answers {
  const roots = rootsBook(parts, options.roots ?? [])
  const routes = new Map(Object.entries(options.routes ?? {}))
  const { onElicit, onSampleReview } = options
  return {
    setRoots: next => roots.set(next),
    answersFor: server => ({
      onSample: samplingFor(parts, server, onSampleReview),
      sampleTools: true,
      ...(onElicit !== undefined && { onElicit: elicitationFor(parts, server, onElicit) }),
      onQuestionRefused: refusedPagesOf(parts, server),
      roots: roots.rootsFor(server),
      live: { onInfer: inferenceFor(parts, server, routes), modelInfo: () => parts.models[0].info },
    }),
  }
}

/** The folders that servers may know of: told only to those that the policy, or the user, lets know; changes are announced to all. */
interface RootsBook {
  /** For one server; nothing where it may not know. */
  rootsFor(server: string): () => Promise<readonly Root[]>
  /** Replaces them, and tells every server that is up. */
  set(roots: readonly Root[]): void
}

function rootsBook(parts: LoopParts, first: readonly Root[]): RootsBook {
  let roots = first
  return {
    rootsFor: server => async () => {
      const told = outcomeNoter(parts, { server, kind: 'roots', began: parts.clock.now() })
      // Others may be set while somebody is asked: the answer is about these.
      const asked = roots
      // That there are none is no secret.
      if (asked.length === 0) {
        told('success', undefined, 'roots: none are set')
        return []
      }
      const { why: said, rule } = await askPermission(parts.policy, { kind: 'roots', server, payload: { roots: asked } })
      told(said === undefined ? 'success' : 'refused', said, rule)
      return said === undefined ? asked : []
    },
    set: next => {
      roots = next
      for (const { client } of parts.servers()) client?.rootsChanged()
    },
  }
}
