/**
 * Signals to a channel while an answer is made, for servers that show them: the message was taken in, somebody types, and the text as it
 * comes. They are optional; the answer itself is published by `ChannelAnswers` after the turn is committed.
 */
import type { Cancel } from '../../core/clock.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { ChannelStream } from '../../features/live/channels/client.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { SummedNotes } from '../../policy/audit/denials.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import type { Policy } from '../../policy/policy.ts'
import { messageOf } from '../../stores/store.ts'
import type { HostFoundation } from '../foundation.ts'
import type { TurnRecord } from '../loop/conversation-log.ts'
import { hasPosted } from '../loop/host-tools.ts'

interface ChannelSignalsParts {
  readonly foundation: Pick<HostFoundation, 'clock' | 'servers'>
  readonly policy: Pick<Policy, 'explain' | 'ruleOfSet'>
  /** Writes to the audit log, with repeats summed up, because servers can cause any number of them. */
  readonly summedNotes: Pick<SummedNotes, 'note'>
}

/** The turn that answers a message. */
interface AnsweringTurn {
  readonly conversation: string
  readonly inferenceId: string
  /** Counted from 1. Only the first attempt is streamed: text that people have seen cannot be taken back. */
  readonly attempt: number
}

/** How long a chat shows the typing indicator. */
const typingMs = 5_000
/** Acknowledgements under way per server; more are skipped. */
const mostAtOnce = 32

/** Tells a channel that its message was taken in, that an answer is being made, and its text as it comes. */
export class ChannelSignals {
  readonly #parts: ChannelSignalsParts
  readonly #stop = new AbortController()
  /** Acknowledgements under way, by server. */
  readonly #telling = new Map<string, Set<Promise<void>>>()

  constructor(parts: ChannelSignalsParts) {
    this.#parts = parts
  }

  /** Acknowledges a message, after the push itself was answered: servers expect that order. */
  acknowledge(server: string, event: PushEvent): void {
    if (event.channel === undefined || this.#stop.signal.aborted) return
    this.#parts.foundation.clock.setTimeout(() => this.#begin(server, event), 0, true)
  }

  /** Starts the signals of an answer. */
  answering(server: string, event: PushEvent, turn: AnsweringTurn): ChannelAnswering {
    return new ChannelAnswering(this.#parts, server, event, turn)
  }

  /** Cancels what is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('The host is closing'))
    await Promise.all([...this.#telling.values()].flatMap(some => [...some]))
  }

  #begin(server: string, event: PushEvent): void {
    const under = this.#telling.get(server) ?? new Set<Promise<void>>()
    if (this.#stop.signal.aborted || under.size >= mostAtOnce) return
    const telling = this.#acknowledge(server, event).finally(() => {
      under.delete(telling)
      if (under.size === 0) this.#telling.delete(server)
    })
    this.#telling.set(server, under.add(telling))
  }

  async #acknowledge(server: string, event: PushEvent): Promise<void> {
    const { policy, summedNotes } = this.#parts
    const { clock, servers } = this.#parts.foundation
    const { channelId, messageId } = event.channel ?? { channelId: '', messageId: '' }
    const live = servers.get(server)?.live
    if (live === undefined) return
    const about = { ...aboutOf(server, event), kind: 'acknowledge' } as const
    const note = (said: Pick<Note, 'outcome' | 'rule' | 'why' | 'ms'>): void => summedNotes.note({ ...about, ...said })
    const forbidden = whyForbidden(policy, server, event, 'channels/acknowledge')
    if (forbidden !== undefined) return note({ outcome: 'refused', why: forbidden })
    const began = clock.now()
    try {
      const answer = await live.acknowledge(channelId, messageId, { signal: this.#stop.signal })
      // The server has no acknowledgements: nothing was sent.
      if (answer === undefined) return
      const ms = clock.now() - began
      if (answer.acknowledged) note({ outcome: 'success', rule: policy.ruleOfSet(server, event.featureSet), ms })
      else note({ outcome: 'failure', why: unshown(channelId, answer.reason ?? 'it gives no reason'), ms })
    } catch (error) {
      if (this.#stop.signal.aborted) return
      note({ outcome: 'failure', why: unshown(channelId, messageOf(error)), ms: clock.now() - began })
    }
  }
}

/** The signals of one answer: typing until the end, and the stream. */
class ChannelAnswering {
  readonly #parts: ChannelSignalsParts
  readonly #server: string
  readonly #event: PushEvent
  readonly #turn: AnsweringTurn
  /** Undefined: not begun. Null: not streamed, or no longer. */
  #stream: ChannelStream | null | undefined = undefined
  /** The text streamed so far. */
  #said = ''
  #timer: Cancel | undefined = undefined

  constructor(parts: ChannelSignalsParts, server: string, event: PushEvent, turn: AnsweringTurn) {
    this.#parts = parts
    this.#server = server
    this.#event = event
    this.#turn = turn
    if (event.channel === undefined || turn.attempt > 1) this.#stream = null
    if (event.channel !== undefined && this.#may('channels/typing', 'typing')) this.#type(true)
  }

  /** Streams a piece of the answer. */
  heard(delta: string, turn: TurnRecord): void {
    const { channelId = '' } = this.#event.channel ?? {}
    if (this.#stream === null) return
    // A message that the model published there itself replaces the answer, so the stream ends.
    if (hasPosted(turn, this.#server, channelId)) return this.#break()
    this.#stream ??= this.#begin(channelId)
    this.#stream?.push(delta)
    if (this.#stream !== null) this.#said += delta
  }

  /** Ends the signals. `text`: the answer; undefined where there is none. Settles when the server was told. */
  async ended(text: string | undefined): Promise<void> {
    this.#timer?.()
    const stream = this.#stream
    this.#stream = null
    await stream?.end(text ?? this.#said)
  }

  /** Opens the stream, where the server has one and rules allow it. */
  #begin(channelId: string): ChannelStream | null {
    const { inferenceId, conversation } = this.#turn
    const stream = this.#live?.stream(channelId, { inferenceId, conversationId: conversation })
    // Text that may not be published must not be streamed either.
    if (stream === undefined || !this.#may('channels/publish', 'stream') || !this.#may('channels/outgoing', 'stream')) return null
    this.#note('stream')
    return stream
  }

  /** Ends the stream early. */
  #break(): void {
    void this.#stream?.end(this.#said)
    this.#stream = null
  }

  /** Repeats the typing indicator, which expires by itself. */
  #type(first = false): void {
    if (this.#live?.typing(this.#event.channel?.channelId ?? '') !== true) return
    if (first) this.#note('typing')
    this.#timer = this.#parts.foundation.clock.setTimeout(() => this.#type(), typingMs, true)
  }

  get #live(): LiveConnection | undefined {
    return this.#parts.foundation.servers.get(this.#server)?.live
  }

  /** Whether rules allow a signal; a refusal is audited. */
  #may(method: string, kind: 'typing' | 'stream'): boolean {
    const { policy, summedNotes } = this.#parts
    const forbidden = whyForbidden(policy, this.#server, this.#event, method)
    if (forbidden !== undefined) summedNotes.note({ ...this.#about(kind), outcome: 'refused', why: forbidden })
    return forbidden === undefined
  }

  #note(kind: 'typing' | 'stream'): void {
    const { policy, summedNotes } = this.#parts
    const rule = policy.ruleOfSet(this.#server, this.#event.featureSet)
    summedNotes.note({ ...this.#about(kind), outcome: 'success', rule })
  }

  #about(kind: 'typing' | 'stream') {
    const { inferenceId, conversation } = this.#turn
    return { ...aboutOf(this.#server, this.#event), inferenceId, conversation, kind }
  }
}

/** Why a rule forbids a signal; undefined where none does. `tool`: the name that rules use for it. */
function whyForbidden(policy: Pick<Policy, 'explain'>, server: string, { featureSet, channel }: PushEvent, tool: string) {
  const { verdict } = policy.explain({ kind: 'tool', server, featureSet, tool, payload: { channel: channel?.channelId ?? '' } })
  return verdict.do === 'deny' ? verdict.why : undefined
}

/** What audit entries of an event have in common. */
function aboutOf(server: string, { featureSet, eventId, channel }: PushEvent) {
  return { server, featureSet, eventId, detail: clip(channel?.channelId ?? '') }
}

/** Why an acknowledgement was not shown. */
function unshown(channelId: string, reason: string): Why {
  const message = `The server did not show the acknowledgement of a message in ${clip(channelId)}: ${clip(reason, 300)}`
  return why('ACKNOWLEDGE_REFUSED', 'channels.acknowledge', message, 'No action is needed: the message was accepted')
}
