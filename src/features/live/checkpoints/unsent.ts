/**
 * States for hosts that keep them and do not send them along, because they do not know which set a tool belongs to: a call without
 * its state would begin anew, and what earlier ones left would be lost. A host that has once sent a state, or says which set it takes
 * a tool for, means what it sends: nothing is remembered for it.
 */
import type { Conversation } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { liveErrorTexts } from '../feature-sets/messages.ts'

interface Kept {
  /** The host sends states itself, or says that there is none. */
  sends: boolean
  /** By their checkpoints, the oldest first. */
  readonly states: Map<string, { readonly value: unknown; readonly size: number }>
  current: string | undefined
}

interface Given {
  readonly checkpoint: string | undefined
  readonly knows: boolean
}

interface Unsent {
  readonly checkpoint: string
  readonly value: unknown
}

/** States of one set for one host: so many, and so many characters of JSON beside the newest. */
const mostStates = 16
const mostCharacters = 1024 * 1024

export class UnsentStates {
  readonly #hosts = new WeakMap<Conversation, Map<string, Kept>>()
  /** What a call was computed from: the same when its result is reported. */
  readonly #opened = new WeakMap<Exchange, { readonly unsent: Unsent | undefined }>()

  /** What stands in for the state that a call did not bring; undefined where it has to be taken at its word. */
  of(exchange: Exchange, featureSet: string, given: Given): Unsent | undefined {
    const opened = this.#opened.get(exchange)
    if (opened !== undefined) return opened.unsent
    const unsent = this.#look(exchange, featureSet, given)
    this.#opened.set(exchange, { unsent })
    return unsent
  }

  #look(exchange: Exchange, featureSet: string, { checkpoint, knows }: Given): Unsent | undefined {
    // Without a session nobody knows that two calls come from one host.
    if (exchange.peer.revision.era !== 'session') return undefined
    const kept = this.#of(exchange, featureSet)
    if (knows) {
      kept.sends = true
      kept.states.clear()
      kept.current = undefined
      return undefined
    }
    // Hosts that leave all state to servers say only where they are.
    const at = checkpoint ?? kept.current
    if (at === undefined) return undefined
    const found = kept.states.get(at)
    if (found !== undefined) return { checkpoint: at, value: found.value }
    throw new McpError('checkpoint-unknown', liveErrorTexts['checkpoint-unknown'], { data: { checkpoint: clip(at, 200) } })
  }

  /** A call has left this state. */
  keep(exchange: Exchange, featureSet: string, checkpoint: string, value: unknown): void {
    if (exchange.peer.revision.era !== 'session') return
    const kept = this.#of(exchange, featureSet)
    if (kept.sends) return
    kept.states.set(checkpoint, { value, size: JSON.stringify(value ?? null).length })
    kept.current = checkpoint
    let characters = 0
    for (const [at, [name, { size }]] of [...kept.states].reverse().entries()) {
      if (at > 0) characters += size
      if (at >= mostStates || characters > mostCharacters) kept.states.delete(name)
    }
  }

  /** Whether the host can go back there: by what it sends, or by what is remembered for it. */
  has(exchange: Exchange, featureSet: string, checkpoint: string): boolean {
    const kept = this.#hosts.get(exchange.conversation)?.get(featureSet)
    return kept === undefined || kept.current === undefined || kept.states.has(checkpoint)
  }

  /** The host has gone back. */
  move(exchange: Exchange, featureSet: string, checkpoint: string): void {
    const kept = this.#hosts.get(exchange.conversation)?.get(featureSet)
    if (kept?.states.has(checkpoint) === true) kept.current = checkpoint
  }

  #of({ conversation }: Exchange, featureSet: string): Kept {
    const sets = this.#hosts.get(conversation) ?? new Map<string, Kept>()
    this.#hosts.set(conversation, sets)
    const kept = sets.get(featureSet) ?? { sends: false, states: new Map(), current: undefined }
    sets.set(featureSet, kept)
    return kept
  }
}
