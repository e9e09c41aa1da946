/** What is asked of a person, and how the answer is read. */

import { type Clock, type Duration, toMilliseconds } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { Tally } from '../../core/occupancy.ts'
import type { Why } from '../../core/suggestion.ts'
import { type SetUse, setUses } from '../../features/live/dialects/messages.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { NoteOutcome } from '../audit/host-audit.ts'
import { type AskVerdict, wordsFor } from '../judge.ts'
import { type Asked, begunByText, type Kind } from '../rules/rule.ts'
import type { Covers, WiderAnswer } from './approvals.ts'

/** A question to the user, with everything that is needed to show and answer it. */
export interface ApprovalQuestion {
  /** The question, as one sentence. Names in it come from the server, and are cut off if they are long. */
  readonly text: string
  /** The complete request. Show the label and the payload of a scope. */
  readonly asked: Asked
  /** What the question is about. For a tool call this can be its scope only. */
  readonly about: Kind
  /** What the arguments act on, if the host can read it from them. */
  readonly scopes: readonly Scope[]
  /** What is unusual: the spelling of a scope, or what a feature set wants beyond what it wanted before. */
  readonly flaw?: string
  /** The rule that asks. */
  readonly rule: string
  /** Identifies what a plain yes applies to. */
  readonly digest: string
  /** How long a plain yes counts, in milliseconds. 0: only once. */
  readonly lastsMs: number
  /** Wider answers that the user may choose. */
  readonly wider: readonly WiderAnswer[]
}

/** The answer of the user: yes or no, or with its duration and reach. */
export type ApprovalAnswer =
  | boolean
  | {
      /** Whether it is allowed. */
      readonly yes: boolean
      /** How long the answer counts. Default: as long as `lastsMs` of the question says for a yes, only once for a no. */
      readonly for?: Duration
      /** Why it is refused. The server gets this text. */
      readonly reason?: string
      /** How far a yes reaches. Default: exactly what was asked. */
      readonly covers?: Covers
      /** Who answered, for the audit log and the turn. */
      readonly by?: string
    }

/** Asks the user. An unanswered question ends with its signal, as a no. */
export type OnApproval = (
  question: ApprovalQuestion,
  context: {
    /** Aborted when the question is no longer of use. */
    readonly signal: AbortSignal
  },
) => ApprovalAnswer | Promise<ApprovalAnswer>

/** The question in one sentence. */
export function questionText(asked: Asked, { scopes, flaw, rule }: AskVerdict): string {
  const places = scopes.map(({ label }) => echo(label)).join(', ')
  const what = asked.kind === 'tool' && places !== '' ? `${wordsFor(asked)} on ${places}` : wordsFor(asked)
  if (asked.kind === 'definition') return `Allow ${what}?${changesIn(asked.payload)} (${rule})`
  const careful = flaw === undefined ? '' : ` Careful: ${flaw}.`
  if (asked.kind === 'set') return `Allow ${what}?${factsIn(asked.payload)}${careful} (${rule})`
  // Of a tool call all arguments: what it does depends on the others as much as on the one that names a place.
  const payload = asked.kind === 'scope' ? asked.scope?.payload : asked.payload
  const shown = payload === undefined ? '' : ` with ${echo(payload, payloadLength)}`
  return `Allow ${what}${shown}${begunByText(asked.begunBy)}?${careful} (${rule})`
}

/** What of the arguments stands in the sentence; whoever shows it shows the rest beside it. */
const payloadLength = 400

/** What a feature set will be able to do, in our words, and then what it says of itself, in its own. */
function factsIn(payload: unknown): string {
  const { description, can } = isRecord(payload) ? payload : {}
  const able = Array.isArray(can) ? ` If you allow it, it ${wordsForUses(can)}.` : ''
  return typeof description === 'string' ? `${able} It describes itself as "${echo(description, 200)}".` : able
}

/** Twenty, and one that says how many more there are. */
const changesShown = 21
/** Room for a path, what stood there and what stands there now: the last of them is what is agreed to. */
const changeLength = 600

/** How a definition differs, a line for each difference, as far as anybody reads on. */
function changesIn(payload: unknown): string {
  const changes = isRecord(payload) && Array.isArray(payload['changes']) ? payload['changes'] : []
  return changes
    .slice(0, changesShown)
    .map(change => `\n  ${echo(change, changeLength)}`)
    .join('')
}

// Asking a person: one question for one thing, however many wait for it, and none for ever.

/** `nobody`: there is nobody to ask; `late`: no answer in time; `failed`: whoever was asked threw. */
type ApprovalOutcome =
  | { readonly is: 'answered'; readonly answer: Exclude<ApprovalAnswer, boolean> }
  | { readonly is: 'nobody' | 'late' | 'failed'; readonly cause?: unknown }

/** Questions that are open at once. One server has at most as many as it leaves free; what comes beyond is refused, as by nobody. */
const most = 100

/** Asks each question once, however many wait for its answer, and bounds how many are open. */
export class ApprovalAsker {
  readonly #onApproval: OnApproval | undefined
  readonly #clock: Clock
  readonly #waitMs: number
  readonly #open = new Map<string, Promise<ApprovalOutcome>>()
  /** How many of those are about each server. */
  readonly #ofServer = new Tally<string>()

  /** `waitMs`: how long an answer is waited for. */
  constructor(onApproval: OnApproval | undefined, clock: Clock, waitMs: number) {
    this.#onApproval = onApproval
    this.#clock = clock
    this.#waitMs = waitMs
  }

  ask(question: ApprovalQuestion): Promise<ApprovalOutcome> {
    const onApproval = this.#onApproval
    const open = this.#open.get(question.digest)
    // A yes that counts only this once is worth one of those that wait; the next of them is asked about by itself.
    if (open !== undefined) return open.then(outcome => (isOnce(outcome) ? this.ask(question) : outcome))
    const { server } = question.asked
    if (onApproval === undefined || this.#ofServer.of(server) >= most - this.#open.size) return Promise.resolve({ is: 'nobody' })
    const asked = this.#ask(question, onApproval).finally(() => {
      this.#open.delete(question.digest)
      this.#ofServer.add(server, -1)
    })
    this.#ofServer.add(server, 1)
    this.#open.set(question.digest, asked)
    return asked
  }

  async #ask(question: ApprovalQuestion, onApproval: OnApproval): Promise<ApprovalOutcome> {
    const ending = new AbortController()
    const late = (): void => ending.abort(new Error('The question was not answered in time'))
    const cancel = this.#clock.setTimeout(late, this.#waitMs, true)
    try {
      const asked = Promise.resolve().then(() => onApproval(question, { signal: ending.signal }))
      const given = await unlessAborted(asked, ending.signal)
      return { is: 'answered', answer: typeof given === 'boolean' ? { yes: given } : given }
    } catch (cause) {
      return { is: ending.signal.aborted ? 'late' : 'failed', cause }
    } finally {
      cancel()
    }
  }
}

function isOnce(outcome: ApprovalOutcome): boolean {
  if (outcome.is !== 'answered' || !outcome.answer.yes || outcome.answer.for === undefined) return false
  return toMilliseconds(outcome.answer.for, 'for') === 0
}

// Decisions that are no verdict of a rule: what somebody answered, what was granted or revoked, which feature sets are on.

/** `approval`: an answer to a question; `grant`: given or revoked by the program; `set`: a feature set went on or off; `rules`: others. */
export interface PolicyDecision {
  readonly kind: 'approval' | 'grant' | 'set' | 'rules'
  /** What it was about. */
  readonly asked: Pick<Asked, 'server' | 'featureSet' | 'begunBy' | 'conversation' | 'inferenceId' | 'eventId'>
  readonly outcome: Extract<NoteOutcome, 'success' | 'refused' | 'timeout' | 'failure'>
  /** What allowed it: a rule, or the approval that was kept. */
  readonly rule?: string | undefined
  readonly why?: Why | undefined
  /** A few words: never arguments. */
  readonly detail: string
  /** Who answered, where the answer says so. */
  readonly by?: string | undefined
}

// What a feature set will be able to do, in the words of whoever is asked about it. The names of the wire say nothing to a user.

const words: Readonly<Record<SetUse, string>> = {
  'contextHooks.beforeInference.observe': 'reads your messages',
  'contextHooks.beforeInference.inject.system': 'may change the instructions that the model follows',
  'contextHooks.beforeInference.inject.beforeUser': 'may add text to the conversation',
  'contextHooks.beforeInference.inject.afterUser': 'may add text to the conversation',
  'contextHooks.afterInference': 'reads your messages and the answers, and may change answers',
  pushEvents: 'may start turns on its own',
  'channels.incoming': 'may start turns on its own, with messages that others write',
  'channels.publish': 'forwards what the agent publishes to others',
  'channels.streaming': 'sees messages to its channels while the agent writes them, including drafts',
  channels: 'lists, opens and closes channels',
  inferenceRequest: 'may use the model at your cost',
  inferenceLifecycle: 'learns when turns start and end, and what they cost',
  tools: 'offers tools to the model',
  state: 'stores its own data on this host',
  rollback: 'rolls back its own changes when you undo a turn',
  scopes: 'asks you before it acts in places that you have not allowed',
  modelInfo: 'learns which model runs',
}

/** The graver ones first: nobody reads to the end. */
const order: readonly string[] = Object.keys(words)

/** As a clause: "reads your messages, may use the model at your cost". */
export function wordsForUses(uses: Iterable<string>): string {
  const known = [...new Set(uses)].filter((use): use is SetUse => (setUses as readonly string[]).includes(use))
  const said = known.sort((a, b) => order.indexOf(a) - order.indexOf(b)).map(use => words[use])
  return said.length === 0 ? 'can do nothing on its own' : [...new Set(said)].join(', ')
}
