/**
 * Runs a turn from the message to the answer: before-hooks, model, tool calls, model again, after-hooks, and one commit with the answer.
 * Planned calls are stored before they are made, so that an interrupted turn can be resumed.
 */
import { type Why, why } from '../../core/suggestion.ts'
import type { AfterInference, BeforeInference } from '../../features/live/context-hooks/messages.ts'
import { usersTurns } from '../../policy/budgets/budgets.ts'
import type { Op } from '../../stores/store.ts'
import type { Model, ModelToolUse } from '../models/model.ts'
import { afterHooks, beforeHooks, holdsAnswers, type InjectedContext } from './before-hooks.ts'
import { type CallParts, makeCall, resumeCall } from './calls.ts'
import type { ConversationLog, LogRecord, PlannedCall, TurnRecord } from './conversation-log.ts'
import { type Generation, generate } from './generate.ts'
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
  const { turn, signal } = run
  const servers = parts.servers().filter(({ client }) => client !== undefined)
  const toolbox = await openToolbox(servers, parts.limits, parts.names)
  const calls = callParts(parts, run, servers, toolbox)
  // Settle the calls that an earlier run left without an outcome.
  for (const call of turn.calls) {
    if (!turn.outcomes.has(call.n)) await settle(run, call, () => resumeCall(calls, call, signal))
  }
  const asked = hookParams(run)
  const shaped = await shapePrompt(parts, run, servers, toolbox, asked)
  const pending = [shaped.record]
  follow(servers, asked, 'started')
  try {
    await converse(parts, run, { servers, toolbox, calls, asked, shaped, pending })
    follow(servers, asked, 'completed')
  } catch (error) {
    follow(servers, asked, signal.aborted ? 'aborted' : 'failed')
    if (pending.length > 0) await run.log.append(() => pending.splice(0))
    throw error
  }
}

/** What the steps of a turn share. */
interface Stage {
  readonly servers: readonly LoopServer[]
  readonly toolbox: Toolbox
  readonly calls: CallParts
  readonly asked: BeforeInference
  /** The prompt after the latest hooks. */
  shaped: Shaped
  /** Records that are written with the next ones, because nothing depends on them. */
  readonly pending: LogRecord[]
}

/** Alternates between model and tool calls until the model answers without calls. */
async function converse(parts: LoopParts, run: TurnRun, stage: Stage): Promise<void> {
  const { log, turn, model, signal } = run
  const held = holdsAnswers(parts, stage.servers)
  const payer = turn.from.kind === 'event' ? turn.from : { ...usersTurns, user: true }
  const generating = { ...parts, payer }
  const hear = (delta: string): void => {
    if (held) return
    run.emit({ type: 'text', delta })
    run.heard?.(delta, turn)
  }
  for (;;) {
    checkBounds(parts, turn)
    const said = await generate(generating, model, stage.shaped.prompt.request(turn), signal, hear)
    if (said.uses.length === 0) return answer(parts, run, stage, said, held)
    const planned = plan(turn, stage.toolbox, said.uses)
    const { toolCalls } = parts.limits
    if (turn.calls.length + planned.length > toolCalls) throw deniedProblem(tooMany('toolCalls', toolCalls, 'tool calls'))
    const step: LogRecord = { type: 'step', seq: turn.seq, content: contentOf(said), calls: planned, usage: said.usage }
    await Promise.all([log.append(() => [...stage.pending.splice(0), step]), said.settled])
    await callAll(parts, run, stage.calls, planned)
    await shapeAnew(parts, run, stage)
  }
}

/** Runs the hooks again: they run before every inference (MCP Live 0.2 §10.1). There is no new user message then. */
async function shapeAnew(parts: LoopParts, run: TurnRun, stage: Stage): Promise<void> {
  const { servers, toolbox, asked } = stage
  if (parts.hookRules.size === 0 && !servers.some(({ live }) => live?.hooks.before === true)) return
  stage.shaped = await shapePrompt(parts, run, servers, toolbox, { ...asked, userMessage: null }, stage.shaped)
  stage.pending.push(stage.shaped.record)
}

/** Notifies servers that follow the life cycle of turns; they get no content. */
function follow(
  servers: readonly LoopServer[],
  { inferenceId, conversationId, turnIndex, model }: BeforeInference,
  phase: 'started' | 'completed' | 'aborted' | 'failed',
): void {
  for (const { live } of servers)
    if (live?.hooks.lifecycle === true) live.lifecycle({ inferenceId, conversationId, turnIndex, model, phase })
}

/** The params of the hooks. */
function hookParams({ log, turn, model, again }: TurnRun): BeforeInference {
  const { inferenceId, index: turnIndex, text } = turn
  return { inferenceId, conversationId: log.id, turnIndex, userMessage: again ? null : text, model: model.info }
}

/** A prompt with the injections that went into it. */
interface Shaped {
  readonly prompt: ComposedPrompt
  readonly injected: readonly InjectedContext[]
  readonly record: LogRecord
}

/** Runs the before-hooks and composes the prompt. `last`: the previous prompt of the same turn. */
async function shapePrompt(
  parts: LoopParts,
  run: TurnRun,
  servers: readonly LoopServer[],
  toolbox: Toolbox,
  asked: BeforeInference,
  last?: Shaped,
): Promise<Shaped> {
  const { log, turn, model, signal } = run
  const waterfall = await beforeHooks(parts, servers, asked, signal)
  const { reports, stopped } = waterfall
  for (const report of reports) run.emit({ type: 'hook', report })
  if (stopped !== undefined) throw deniedProblem(stopped)
  const injected = last === undefined ? waterfall.injected : standing(servers, last.injected, waterfall.injected)
  const { system, limits } = parts
  const earlier = log.before(turn, limits.historyTurns)
  const prompt = composePrompt({
    model: model.info,
    system,
    earlier,
    turn,
    injected,
    tools: toolbox.tools,
    answerTokens: limits.answerTokens,
    before: last?.prompt.snapshot ?? earlier.at(-1)?.prompt,
  })
  run.emit({ type: 'prompt', prompt: prompt.snapshot })
  return { prompt, injected, record: { type: 'prompt', seq: turn.seq, prompt: prompt.snapshot, hooks: reports } }
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

/** What tool calls need from this turn. */
function callParts(parts: LoopParts, run: TurnRun, servers: readonly LoopServer[], toolbox: Toolbox): CallParts {
  const { log, turn, emit } = run
  return {
    ...parts,
    ...{ servers, toolbox },
    conversation: log.id,
    inferenceId: turn.inferenceId,
    begunBy: turn.from,
    onProgress: (n, step) => emit({ type: 'progress', n, ...step }),
  }
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

/** Makes several calls at a time and stores each outcome at once. Waits for all, even if one fails. */
async function callAll(parts: LoopParts, run: TurnRun, calls: CallParts, planned: readonly PlannedCall[]): Promise<void> {
  const waiting = [...planned]
  const work = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      const one = call
      await settle(run, one, () => makeCall(calls, one, run.signal))
    }
  }
  const workers = Array.from({ length: Math.min(parts.limits.parallelCalls, planned.length) }, work)
  for (const ended of await Promise.allSettled(workers)) if (ended.status === 'rejected') throw ended.reason
}

/** Makes one call and stores its outcome. */
async function settle(
  { log, turn, emit, signal }: TurnRun,
  call: PlannedCall,
  work: () => ReturnType<typeof makeCall>,
): Promise<void> {
  signal.throwIfAborted()
  emit({ type: 'call', call })
  const { outcome, ops } = await work()
  // An aborted call has no outcome yet: a resumed turn finds it as planned.
  if (signal.aborted && outcome.status !== 'done' && outcome.rolledBack !== true) signal.throwIfAborted()
  await log.append(() => [{ type: 'result', seq: turn.seq, outcome }], ops)
  emit({ type: 'result', call, outcome })
  signal.throwIfAborted()
}

/** Throws where the turn has reached a limit. */
function checkBounds({ limits }: LoopParts, turn: TurnRecord): void {
  const { inputTokens, outputTokens } = turn.usage
  if (turn.inferences >= limits.steps) throw deniedProblem(tooMany('steps', limits.steps, 'answers of the model'))
  if (inputTokens + outputTokens >= limits.turnTokens) throw deniedProblem(tooMany('turnTokens', limits.turnTokens, 'tokens'))
}

/** Why a turn has reached a limit. */
function tooMany(limit: string, most: number, what: string): Why {
  const fix = `Ask for less at once, or raise limits.${limit}`
  return why('TURN_TOO_LONG', `limits.${limit}`, `The turn has used its ${most} ${what}`, fix)
}

/** Runs the after-hooks and commits the answer. */
async function answer(
  parts: LoopParts,
  run: TurnRun,
  { servers, asked, pending }: Stage,
  said: Generation,
  held: boolean,
): Promise<void> {
  const { log, turn, emit, signal } = run
  const { usage, finishReason, model } = said
  const params: AfterInference = { ...asked, assistantMessage: said.text, usage: totalUsage(turn, usage) }
  const { text, changes, reports, stopped } = await afterHooks(parts, servers, params, signal)
  for (const report of reports) emit({ type: 'hook', report })
  if (stopped !== undefined) throw deniedProblem(stopped)
  const { seq, inferenceId, from } = turn
  const note = parts.audit.ops({
    server: from.kind === 'event' ? from.server : '',
    ...(from.kind === 'event' && { featureSet: from.featureSet, eventId: from.eventId }),
    ...{ inferenceId, conversation: log.id, kind: 'turn', outcome: 'success' as const, detail: model },
  })
  const written = log.append(
    () => [
      ...pending.splice(0),
      { type: 'answer', seq, text, finishReason, usage, model, changes, hooks: reports, at: parts.clock.now() },
    ],
    [...run.done, ...(run.answered?.(text, turn) ?? []), ...note],
  )
  await Promise.all([written, said.settled])
  if (held && text !== '') emit({ type: 'text', delta: text })
  emit({ type: 'answer', text, changes })
}

/** The usage of all steps. */
function totalUsage({ usage }: TurnRecord, last: Generation['usage']): Generation['usage'] {
  return { inputTokens: usage.inputTokens + last.inputTokens, outputTokens: usage.outputTokens + last.outputTokens }
}
