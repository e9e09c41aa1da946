/** A conversation: runs its turns one at a time, stores each before it begins, and resumes or undoes them, also after a restart. */
import { type Problem, problem } from '../../core/problem.ts'
import { why } from '../../core/suggestion.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { budgetRefusal } from '../../policy/budgets/budgets.ts'
import type { Op } from '../../stores/store.ts'
import { eventMessage } from '../models/quoted.ts'
import { ConversationLog, type LogRecord, type TurnRecord } from './conversation-log.ts'
import { moneyFor } from './generate.ts'
import { DeadlineExceeded, withDeadline } from './limits.ts'
import { isAbort, whyOf, whyProblem } from './permission.ts'
import type { LoopParts } from './ports.ts'
import { runTurn, type TurnEffects, turnNote } from './run-turn.ts'
import { PartBuffer, Turn, type TurnAnswer, type TurnStatus } from './turn.ts'
import { isPartlyUndone, undoTurn } from './undo.ts'
import { type PlannedUndoStep, planUndo, type UndoPlan } from './undo-plan.ts'
import type { UndoReport, UndoStep } from './undo-steps.ts'
import { type Attachment, completeCommand, readUserInput, type UserInputOptions } from './user-input.ts'

/** The events that become a turn. */
interface PushedTurn extends TurnEffects {
  readonly server: string
  readonly event: PushEvent
  /** All events of the turn, including the first. Default: only that one. */
  readonly events?: readonly PushEvent[]
  /** Other servers whose events caused it. */
  readonly through?: readonly string[]
  readonly inferenceId: string
  /** Written before anything else is done. */
  readonly begin?: readonly Op[]
}

/** How long a stopped turn may take to end. */
const graceMs = 5_000

/** How a turn is started. */
interface Start extends TurnEffects {
  /** It was started before and is resumed. */
  readonly again: boolean
  readonly signal: AbortSignal | undefined
  readonly attach?: readonly Attachment[]
}

/** A turn that runs or waits. */
interface Running {
  readonly stop: AbortController
  readonly buffer: PartBuffer
  readonly done: Promise<TurnAnswer>
  /** False while it waits for earlier turns. */
  begun: boolean
}

/** A conversation with the agent. Its turns run one after the other. */
export class HostConversation {
  /** The name of the conversation. */
  readonly id: string
  readonly #parts: LoopParts
  readonly #closing: AbortSignal
  /** Opened on first use. */
  #log: Promise<ConversationLog> | undefined = undefined
  /** Settles when all turns so far have ended. */
  #tail: Promise<unknown> = Promise.resolve()
  /** By sequence number. */
  readonly #running = new Map<number, Running>()

  constructor(id: string, parts: LoopParts, closing: AbortSignal) {
    this.id = id
    this.#parts = parts
    this.#closing = closing
  }

  /** Whether a turn runs or waits. */
  get busy(): boolean {
    return this.#running.size > 0
  }

  /**
   * Sends a message of the user. Resolves with the turn as soon as the message is stored; iterate the turn, or await `turn.done`.
   * @example
   * const turn = await host.conversation('c1').send('How is the project?')
   * const { text } = await turn.done
   */
  async send(input: string | readonly LiveBlock[], options: UserInputOptions = {}): Promise<Turn> {
    options.signal?.throwIfAborted()
    this.#closing.throwIfAborted()
    this.#checkQueue()
    const { text, messages, ops } = await readUserInput(this.#parts, this.id, input, options)
    const record = await this.#accept({ inferenceId: `inf_${this.#parts.newId()}`, from: { kind: 'user' }, text, messages }, ops)
    return this.#start(record, { again: false, done: [], signal: options.signal, attach: options.attach ?? [] })
  }

  /**
   * Runs a turn for events, or resumes the one that was cut off. Resolves when its answer is stored.
   * @internal The inbox calls it.
   */
  async deliver(pushed: PushedTurn, signal: AbortSignal): Promise<Turn> {
    const { server, event, events = [event], through = [], inferenceId, begin = [], done, answered, heard } = pushed
    const log = await this.#open()
    const before = log.of(inferenceId)
    if (before?.end !== undefined) {
      // The turn has ended, but the event was not marked as done.
      if (done.length > 0) await log.append(() => [], done)
      return this.#handle(before)
    }
    if (before !== undefined && begin.length > 0) await log.append(() => [], begin)
    const { featureSet, eventId } = event
    const from = { kind: 'event', server, featureSet, eventId, ...(through.length > 0 && { through }) } as const
    const messages = [eventMessage(server, events)]
    const record = before ?? (await this.#accept({ inferenceId, from, text: null, messages }, begin))
    const turn = this.#running.has(record.seq)
      ? this.#handle(record)
      : this.#start(record, { again: before !== undefined, done, answered, heard, signal })
    await turn.done
    return turn
  }

  /** Returns the turns, oldest first, without those that were undone. */
  async turns({
    undone = false,
  }: {
    /** Whether to include turns that were undone. Default false. */
    readonly undone?: boolean
  } = {}): Promise<readonly Turn[]> {
    const log = await this.#open()
    return (undone ? log.turns : log.chain).map(record => this.#handle(record))
  }

  /** Resumes turns that a stop of the host interrupted, and returns the last of them. The inbox resumes turns of events itself. */
  async resume(
    options: {
      /** Cancels the resumed turns. */
      readonly signal?: AbortSignal
    } = {},
  ): Promise<Turn | undefined> {
    const log = await this.#open()
    const open = log.chain.filter(({ seq, end, from }) => end === undefined && from.kind === 'user' && !this.#running.has(seq))
    const begun = open.map(record =>
      this.#start(record, { again: record.prompt !== undefined, done: [], signal: options.signal }),
    )
    return begun.at(-1)
  }

  /** Returns completions for a line that begins with a slash. */
  complete(line: string): Promise<readonly string[]> {
    return completeCommand(this.#parts.servers(), line)
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    await this.#tail
  }

  /** The log; reading is retried at the next call where it fails. */
  #open(): Promise<ConversationLog> {
    this.#log ??= ConversationLog.open(this.#parts.store, this.id).catch(error => {
      this.#log = undefined
      throw error
    })
    return this.#log
  }

  /** Throws where too many turns wait. */
  #checkQueue(): void {
    const { queue } = this.#parts.limits
    if (this.#running.size < queue) return
    throw problem('CONVERSATION_BUSY', `${queue} turns wait in the conversation ${clip(this.id)} (the limit)`, {
      category: 'transient',
      suggestion: 'Wait for an answer, or raise limits.queue',
    })
  }

  /** Stores a new turn. */
  async #accept(
    facts: Pick<LogRecord & { type: 'turn' }, 'inferenceId' | 'from' | 'text' | 'messages'>,
    ops: readonly Op[] = [],
  ): Promise<TurnRecord> {
    const log = await this.#open()
    const { clock, newId } = this.#parts
    const make = (): readonly LogRecord[] => {
      const place = { seq: log.turns.length, index: log.chain.length }
      return [{ type: 'turn', ...place, ...facts, key: newId(), at: clock.now() }]
    }
    const [record] = await log.append(make, ops).catch(error => {
      // Another process has written: the next attempt reads the log again.
      if (!this.busy) this.#log = undefined
      throw error
    })
    const seq = record?.type === 'turn' ? record.seq : -1
    const turn = log.turns[seq]
    if (turn === undefined) throw new Error('A turn that was written is missing from the log')
    return turn
  }

  /** Queues a turn behind the others. */
  #start(record: TurnRecord, how: Start): Turn {
    const stop = new AbortController()
    const buffer = new PartBuffer()
    const given = how.signal
    const giveUp = (): void => stop.abort(given?.reason)
    given?.addEventListener('abort', giveUp, { once: true })
    if (given?.aborted) giveUp()
    const done = this.#tail.then(() => this.#run(record, how, { stop, buffer }))
    this.#running.set(record.seq, { stop, buffer, done, begun: false })
    const over = (): void => {
      given?.removeEventListener('abort', giveUp)
      this.#running.delete(record.seq)
      buffer.close()
    }
    this.#tail = done.then(over, over)
    const turn = this.#handle(record)
    this.#parts.onTurn?.(turn, { attach: how.attach ?? [], resumed: how.again })
    return turn
  }

  /** Runs a turn to its end, and stores why it ended early. */
  async #run(
    record: TurnRecord,
    how: Omit<Start, 'attach'>,
    { stop, buffer }: Pick<Running, 'stop' | 'buffer'>,
  ): Promise<TurnAnswer> {
    const running = this.#running.get(record.seq)
    if (running !== undefined) running.begun = true
    const { clock, limits, models } = this.#parts
    const log = await this.#open()
    try {
      const signal = AbortSignal.any([stop.signal, this.#closing])
      signal.throwIfAborted()
      const emit = buffer.push.bind(buffer)
      const run = (inner: AbortSignal) =>
        runTurn(this.#parts, { log, turn: record, model: models[0], ...how, emit, signal: inner })
      await withDeadline(clock, limits.turnMs, signal, run, graceMs)
      return answerOfRecord(record)
    } catch (error) {
      const [status, cause] = this.#failureOf(record, error)
      const said = whyOf(cause, 'turn')
      if (status !== 'interrupted') {
        const note = this.#parts.audit.ops({ ...turnNote(record, this.id), outcome: 'failure', detail: status, why: said })
        const ended = (): LogRecord => ({ type: 'ended', seq: record.seq, status, why: said, at: clock.now() })
        await log.append(() => [ended()], [...(status === 'cancelled' ? how.done : []), ...note])
      }
      buffer.push({ type: 'ended', status, why: said })
      throw cause
    }
  }

  /** How a failed turn ends. Turns of events, and turns of a host that closes, stay open to be resumed. */
  #failureOf(record: TurnRecord, error: unknown): ['failed' | 'cancelled' | 'interrupted', Problem] {
    const cause = error instanceof DeadlineExceeded ? turnTooLong(this.#parts.limits.turnMs) : classify(error)
    if (cause.code === cancelledCode) return ['cancelled', cause]
    if (this.#closing.aborted || (record.from.kind === 'event' && !neverEnough(cause))) return ['interrupted', cause]
    return isAbort(error) ? ['cancelled', turnCancelled('The caller cancelled the turn')] : ['failed', cause]
  }

  /** The public object for a turn. */
  #handle(record: TurnRecord): Turn {
    const running = this.#running.get(record.seq)
    const done = running?.done ?? answerOfEnded(record)
    // A caller that never awaits `done` must not cause an unhandled rejection.
    done.catch(() => undefined)
    return new Turn(record, {
      conversation: this.id,
      parts: running?.buffer ?? PartBuffer.of(record),
      done,
      status: () => this.#status(record),
      money: usage => moneyFor(this.#parts.models[0], usage.inputTokens, usage.outputTokens).money,
      cancel: reason => this.#running.get(record.seq)?.stop.abort(turnCancelled(reason)),
      undo: () => this.#undo(record),
      plan: () => this.#undoPlan(record),
    })
  }

  /** The current state of a turn. */
  #status(record: TurnRecord): TurnStatus {
    if (record.undone) return 'undone'
    if (record.end !== undefined) return record.end
    const running = this.#running.get(record.seq)
    if (running === undefined) return 'interrupted'
    return running.begun ? 'running' : 'waiting'
  }

  /** Undoes a turn and all later ones, in line with the turns, so that nothing runs meanwhile. */
  #undo(record: TurnRecord): Promise<UndoReport> {
    if (!record.undone)
      for (const [seq, { stop }] of this.#running) if (seq >= record.seq) stop.abort(turnCancelled('The turn is being undone'))
    const undone = this.#tail.then(() => this.#undoNow(record))
    this.#tail = undone.catch(() => undefined)
    return undone
  }

  /** What an undo would do now. Turns that run are taken as they are. */
  async #undoPlan(record: TurnRecord): Promise<UndoPlan> {
    const log = await this.#open()
    const turns = undone(log, record)
    const steps: PlannedUndoStep[] = []
    for (const turn of turns) {
      const later = record.undone ? log.chain.filter(({ seq }) => seq > turn.seq) : []
      const parts = { ...this.#parts, servers: this.#parts.servers(), conversation: this.id, later }
      steps.push(...(await planUndo(parts, turn)))
    }
    const complete = steps.every(({ outcome }) => outcome !== 'stays')
    return { complete, turns: record.undone ? [] : turns.map(({ seq }) => seq), steps }
  }

  /** A second undo only repeats the steps that failed the first time. */
  async #undoNow(record: TurnRecord): Promise<UndoReport> {
    const log = await this.#open()
    const again = record.undone
    const turns = undone(log, record)
    const servers = this.#parts.servers()
    const keep = async (step: UndoStep): Promise<void> => void (await log.append(() => [{ type: 'undo', seq: step.seq, step }]))
    const steps: UndoStep[] = []
    for (const turn of turns) {
      const later = again ? log.chain.filter(({ seq }) => seq > turn.seq) : []
      const parts = { ...this.#parts, servers, conversation: this.id, later, keep }
      steps.push(...(await undoTurn(parts, turn)))
    }
    if (again) return undoReport([], steps)
    const seqs = turns.map(({ seq }) => seq)
    await log.append(() => [{ type: 'undone', seqs, at: this.#parts.clock.now() }])
    return undoReport(seqs, steps)
  }
}

/** The turns that an undo is about, latest first: of one that was undone before, those of which something stayed. */
function undone(log: ConversationLog, { seq: first, undone: again }: TurnRecord): readonly TurnRecord[] {
  return (again ? log.turns.filter(isPartlyUndone) : log.chain).filter(({ seq }) => seq >= first).toReversed()
}

/** Sums up the steps of an undo. It is complete where nothing stays. */
function undoReport(turns: readonly number[], steps: readonly UndoStep[]): UndoReport {
  return { complete: steps.every(({ outcome }) => outcome !== 'stays'), turns, steps }
}

/** Whether a budget can never pay for the turn, so that retrying is useless. */
function neverEnough(cause: Problem): boolean {
  const refused = budgetRefusal(cause)
  return refused !== undefined && refused.retryAfterMs === undefined
}

/** The code of a turn that was cancelled. */
const cancelledCode = 'TURN_CANCELLED'

/** The answer of a turn that succeeded. */
function answerOfRecord({ answer = '', finishReason = 'end_turn', model = '', usage, changes }: TurnRecord): TurnAnswer {
  return { text: answer, finishReason, model, usage, changes }
}

/** The answer of a turn that no longer runs. */
function answerOfEnded(record: TurnRecord): Promise<TurnAnswer> {
  if (record.end === 'done') return Promise.resolve(answerOfRecord(record))
  const said = record.why ?? why('TURN_INTERRUPTED', 'host', 'The host was stopped during this turn', 'Resume the conversation')
  return Promise.reject(whyProblem(said))
}

/** The error of a cancelled turn. */
function turnCancelled(reason = 'The turn was stopped'): Problem {
  return problem(cancelledCode, reason, { suggestion: 'Send the message again, or undo the turn' })
}

/** The error of a turn that exceeded `limits.turnMs`. */
function turnTooLong(ms: number): Problem {
  const fix = 'Request less at a time, or raise limits.turnMs'
  return whyProblem(
    why('TURN_TOO_LONG', 'limits.turnMs', `The turn took longer than ${ms} ms (the limit)`, fix),
    'OPERATION_TIMEOUT',
  )
}
