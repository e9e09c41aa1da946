/**
 * Runs a turn from the message to the answer: before-hooks, model, tool calls, model again, after-hooks, and one commit with the answer.
 * Planned calls are stored before they are made, so that an interrupted turn can be resumed.
 */
import { type Why, why } from '../../core/suggestion.ts'
import type { AfterInference, BeforeInference } from '../../features/live/context-hooks/messages.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import { userSpender } from '../../policy/budgets/budgets.ts'
import type { Op } from '../../stores/store.ts'
import type { Model, ModelToolUse } from '../models/model.ts'
import { type CallParts, makeCall, resumeCall } from './calls.ts'
import type { ConversationLog, LogRecord, PlannedCall, TurnRecord } from './conversation-log.ts'
import { type Generation, generate, type InferenceReport } from './generate.ts'
import { afterHooks, beforeHooks, holdsAnswers, type InjectedContext } from './inference-hooks.ts'
import { deniedProblem } from './permission.ts'
import type { LoopParts, LoopServer } from './ports.ts'
import { type ComposedPrompt, composePrompt } from './prompt.ts'
import { isReadOnly, openToolbox, type Toolbox } from './toolbox.ts'
import type { TurnPart } from './turn.ts'

/** What a turn does beside answering. */
export interface TurnEffects {
  /** Committed with the answer. */
  readonly done: readonly Op[]
  /** Further operations that depend on the answer. */
  readonly answered?: ((text: string, turn: TurnRecord) => readonly Op[]) | undefined
  /** Called with each piece of the answer that may be shown at once. */
  readonly heard?: ((delta: string, turn: TurnRecord) => void) | undefined
}

interface TurnRun extends TurnEffects {
  readonly log: ConversationLog
  readonly turn: TurnRecord
  readonly model: Model
  /** The turn is resumed. */
  readonly again: boolean
  /** Streams a part to the turn's readers. */
  readonly emit: (part: TurnPart) => void
  readonly signal: AbortSignal
}

/** Runs the turn. Returns when the answer is stored; throws what ended it early. */
export async function runTurn(parts: LoopParts, run: TurnRun): Promise<void> {
  const servers = parts.servers().filter(({ client }) => client !== undefined)
  const toolbox = await openToolbox(servers, parts.limits, parts.names)
  await new TurnRunner(parts, run, servers, toolbox).run()
}

/** A prompt with the injections that went into it. */
interface PromptWithInjections {
  readonly prompt: ComposedPrompt
  readonly injected: readonly InjectedContext[]
}

/** One run of a turn, with the servers and tools that there were when it began. */
class TurnRunner {
  readonly #parts: LoopParts
  readonly #run: TurnRun
  readonly #servers: readonly LoopServer[]
  readonly #toolbox: Toolbox
  readonly #calls: CallParts
  /** The params of the hooks. */
  readonly #asked: BeforeInference
  /** Records that are written with the next ones, because nothing depends on them. */
  readonly #pending: LogRecord[] = []

  constructor(parts: LoopParts, run: TurnRun, servers: readonly LoopServer[], toolbox: Toolbox) {
    const { log, turn, model, again, emit } = run
    const { inferenceId, index: turnIndex, text, from: begunBy } = turn
    this.#parts = parts
    this.#run = run
    this.#servers = servers
    this.#toolbox = toolbox
    this.#asked = { inferenceId, conversationId: log.id, turnIndex, userMessage: again ? null : text, model: model.info }
    this.#calls = {
      ...parts,
      ...{ servers, toolbox, conversation: log.id, inferenceId, begunBy },
      onProgress: (n, step) => emit({ type: 'progress', n, ...step }),
    }
  }

  async run(): Promise<void> {
    const { log, turn, signal } = this.#run
    // Settle the calls that an earlier run left without an outcome.
    for (const call of turn.calls) {
      if (!turn.outcomes.has(call.n)) await this.#settle(call, () => resumeCall(this.#calls, call, signal))
    }
    const shaped = await this.#shape(this.#asked)
    this.#follow('started')
    try {
      await this.#converse(shaped)
      this.#follow('completed')
    } catch (error) {
      this.#follow(signal.aborted ? 'aborted' : 'failed')
      if (this.#pending.length > 0) await log.append(() => this.#pending.splice(0))
      throw error
    }
  }

  /** Alternates between model and tool calls until the model answers without calls. */
  async #converse(first: PromptWithInjections): Promise<void> {
    const { log, turn, model, signal, emit, heard } = this.#run
    const held = holdsAnswers(this.#parts, this.#servers)
    const payer = turn.from.kind === 'event' ? turn.from : { ...userSpender, user: true }
    const generating = { ...this.#parts, payer }
    const hear = (delta: string): void => {
      if (held) return
      emit({ type: 'text', delta })
      heard?.(delta, turn)
    }
    for (let shaped = first; ; shaped = await this.#shapeAnew(shaped)) {
      checkBounds(this.#parts, turn)
      const began = { n: turn.inferences, model: model.info.id, began: this.#parts.clock.now(), calls: [] }
      emit({ type: 'inference', inference: began })
      const said = await generate(generating, model, shaped.prompt.request(turn), signal, hear)
      if (said.uses.length === 0) return this.#answer(said, held)
      const planned = plan(turn, this.#toolbox, said.uses)
      const { toolCalls } = this.#parts.limits
      if (turn.calls.length + planned.length > toolCalls) throw deniedProblem(tooMany('toolCalls', toolCalls, 'tool calls'))
      const inference = this.#told(said, planned)
      const step = {
        type: 'step',
        seq: turn.seq,
        content: contentOf(said),
        calls: planned,
        usage: said.usage,
        inference,
      } as const
      await Promise.all([log.append(() => [...this.#pending.splice(0), step]), said.settled])
      await this.#callAll(planned)
    }
  }

  /** Streams when an answer of the model began and ended. */
  #told({ began, firstMs, ms, model, usage }: Generation, planned: readonly PlannedCall[]): InferenceReport {
    const { turn, emit } = this.#run
    const inference = {
      ...{ n: turn.inferences, model, began, ms, usage },
      calls: planned.map(({ n }) => n),
      ...(firstMs !== undefined && { firstMs }),
    }
    emit({ type: 'inference', inference })
    return inference
  }

  /** Runs the hooks again: they run before every inference (MCP Live 0.2 §10.1). There is no new user message then. */
  async #shapeAnew(last: PromptWithInjections): Promise<PromptWithInjections> {
    const asks = this.#parts.hookRules.size > 0 || this.#servers.some(({ live }) => live?.hooks.before === true)
    return asks ? this.#shape({ ...this.#asked, userMessage: null }, last) : last
  }

  /** Notifies servers that follow the life cycle of turns; they get no content. */
  #follow(phase: 'started' | 'completed' | 'aborted' | 'failed'): void {
    const { inferenceId, conversationId, turnIndex, model } = this.#asked
    for (const { live } of this.#servers)
      if (live?.hooks.lifecycle === true) live.lifecycle({ inferenceId, conversationId, turnIndex, model, phase })
  }

  /** Runs the before-hooks and composes the prompt. `last`: the previous prompt of the same turn. */
  async #shape(asked: BeforeInference, last?: PromptWithInjections): Promise<PromptWithInjections> {
    const { log, turn, model, signal, emit } = this.#run
    const { system, limits } = this.#parts
    const { injected: fresh, reports, stopped } = await beforeHooks(this.#parts, this.#servers, asked, signal)
    for (const report of reports) emit({ type: 'hook', report })
    if (stopped !== undefined) throw deniedProblem(stopped)
    const injected = last === undefined ? fresh : standing(this.#servers, last.injected, fresh)
    const earlier = log.before(turn, limits.historyTurns)
    const prompt = composePrompt({
      model: model.info,
      ...{ system, earlier, turn, injected },
      tools: this.#toolbox.tools,
      answerTokens: limits.answerTokens,
      before: last?.prompt.snapshot ?? earlier.at(-1)?.prompt,
    })
    emit({ type: 'prompt', prompt: prompt.snapshot })
    this.#pending.push({ type: 'prompt', seq: turn.seq, prompt: prompt.snapshot, hooks: reports })
    return { prompt, injected }
  }

  /** Makes several calls at a time and stores each outcome at once. Waits for all, even if one fails. */
  async #callAll(planned: readonly PlannedCall[]): Promise<void> {
    const waiting = [...planned]
    const work = async (): Promise<void> => {
      for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
        const one = call
        await this.#settle(one, () => makeCall(this.#calls, one, this.#run.signal))
      }
    }
    const workers = Array.from({ length: Math.min(this.#parts.limits.parallelCalls, planned.length) }, work)
    for (const ended of await Promise.allSettled(workers)) if (ended.status === 'rejected') throw ended.reason
  }

  /** Makes one call and stores its outcome. */
  async #settle(call: PlannedCall, work: () => ReturnType<typeof makeCall>): Promise<void> {
    const { log, turn, emit, signal } = this.#run
    signal.throwIfAborted()
    emit({ type: 'call', call })
    const { outcome, ops } = await work()
    // An aborted call has no outcome yet: a resumed turn finds it as planned.
    if (signal.aborted && outcome.status !== 'done' && outcome.rolledBack !== true) signal.throwIfAborted()
    await log.append(() => [{ type: 'result', seq: turn.seq, outcome }], ops)
    emit({ type: 'result', call, outcome })
    signal.throwIfAborted()
  }

  /** Runs the after-hooks and commits the answer. `held`: it was not streamed, because hooks could still change it. */
  async #answer(said: Generation, held: boolean): Promise<void> {
    const { log, turn, emit, signal, done, answered } = this.#run
    const { usage, finishReason, model } = said
    const inference = this.#told(said, [])
    const params: AfterInference = { ...this.#asked, assistantMessage: said.text, usage: totalUsage(turn, usage) }
    const { text, changes, reports, stopped } = await afterHooks(this.#parts, this.#servers, params, signal)
    for (const report of reports) emit({ type: 'hook', report })
    if (stopped !== undefined) throw deniedProblem(stopped)
    const { seq } = turn
    const note = this.#parts.audit.ops({ ...turnNote(turn, log.id), outcome: 'success', detail: model })
    const record = { type: 'answer', seq, text, finishReason, usage, model, changes, hooks: reports, inference } as const
    const written = log.append(
      () => [...this.#pending.splice(0), { ...record, at: this.#parts.clock.now() }],
      [...done, ...(answered?.(text, turn) ?? []), ...note],
    )
    await Promise.all([written, said.settled])
    if (held && text !== '') emit({ type: 'text', delta: text })
    emit({ type: 'answer', text, changes })
  }
}

/** Injections of this turn: a server's earlier ones stay until it injects others or its feature set is disabled. */
function standing(
  servers: readonly LoopServer[],
  before: readonly InjectedContext[],
  now: readonly InjectedContext[],
): readonly InjectedContext[] {
  return servers.flatMap(({ name, live }) => {
    const fresh = now.filter(({ server }) => server === name)
    if (fresh.length > 0 || live?.hooks.before !== true) return fresh
    return before.filter(({ server, featureSet }) => server === name && live.featureSets.get(featureSet)?.enabled === true)
  })
}

/** Plans calls. Their keys come from the turn, so that a repeated call is recognised. */
function plan(turn: TurnRecord, toolbox: Toolbox, uses: readonly ModelToolUse[]): readonly PlannedCall[] {
  return uses.map(({ id, name, arguments: args }, at) => {
    const n = turn.calls.length + at
    const entry = toolbox.find(name)
    const common = { id, n, name, arguments: args, key: `${turn.key}-${n}` }
    if (entry === undefined) return { ...common, tool: name, readOnly: true }
    const { server, tool, featureSet, definition } = entry
    const readOnly = isReadOnly(definition)
    return { ...common, server, tool, readOnly, ...(featureSet !== undefined && { featureSet }) }
  })
}

/** The step's content: text, then calls. */
function contentOf({ text, uses }: Generation): (LogRecord & { type: 'step' })['content'] {
  return text === '' ? uses : [{ type: 'text', text }, ...uses]
}

/** Throws where the turn has reached a limit. */
function checkBounds({ limits }: LoopParts, turn: TurnRecord): void {
  const { inputTokens, outputTokens } = turn.usage
  if (turn.inferences >= limits.steps) throw deniedProblem(tooMany('steps', limits.steps, 'model responses'))
  if (inputTokens + outputTokens >= limits.turnTokens) throw deniedProblem(tooMany('turnTokens', limits.turnTokens, 'tokens'))
}

/** Why a turn has reached a limit. */
function tooMany(limit: string, most: number, what: string): Why {
  const fix = `Request less at a time, or raise limits.${limit}`
  return why('TURN_TOO_LONG', `limits.${limit}`, `The turn has used ${most} ${what} (the limit)`, fix)
}

/** What audit entries of a turn have in common. */
export function turnNote({ inferenceId, from }: TurnRecord, conversation: string): Omit<Note, 'outcome'> {
  const about = { inferenceId, conversation, kind: 'turn' }
  if (from.kind !== 'event') return { server: '', ...about }
  const { server, featureSet, eventId } = from
  return { server, featureSet, eventId, ...about }
}

/** The usage of all steps. */
function totalUsage({ usage }: TurnRecord, last: Generation['usage']): Generation['usage'] {
  return { inputTokens: usage.inputTokens + last.inputTokens, outputTokens: usage.outputTokens + last.outputTokens }
}
