/** Runs the head of a queue: checks permission and budget, records the attempt, hands it to the host's run function, and ends it. */
import { unlessAborted } from '../../core/deadlines.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { add, check, messageOf, type Op, put, remove } from '../../stores/store.ts'
import { aboutOf, askedOf } from './acceptance.ts'
import type { Item } from './event-queues.ts'
import type { InboxContext } from './inbox-context.ts'
import { type InboxEntry, type InboxNote, type InboxRun, RunLater, type WithheldReason } from './options.ts'
import { type Attempt, type Dead, type InboxState, inboxKeys, type SeenEvent, seenOf, type Todo } from './records.ts'

/** A queued item with its work. */
interface Work {
  readonly item: Item
  readonly todo: Todo
}

/** The events of one run. */
interface Batch {
  readonly server: string
  readonly jobs: readonly [Work, ...Work[]]
  /** Fails a commit if this process no longer owns the server. */
  readonly fence: Op
}

/** The pause after a store failure, or while a server is not configured. */
const restMs = 1_000
const errorLength = 500

/** Runs events, and retries failed ones. */
export class Runs {
  readonly #context: InboxContext
  readonly #run: InboxRun
  /** The run writes `begin` itself. */
  readonly #writesBegin: boolean
  readonly #ending = new AbortController()

  constructor(context: InboxContext, run: InboxRun, writesBegin: boolean) {
    this.#context = context
    this.#run = run
    this.#writesBegin = writesBegin
  }

  /** Aborts running events. */
  end(): void {
    this.#ending.abort(new Error('The inbox is closing'))
  }

  /** Runs a batch: dead after too many interruptions, otherwise permission, approval, budget, then the attempt. */
  async run(server: string, items: readonly Item[]): Promise<void> {
    if (!this.#context.isConfigured(server)) return this.#rest(items)
    try {
      const batch = await this.#batch(server, items)
      if (batch === undefined) return
      const [{ todo, item }] = batch.jobs
      if (item.attempts.filter(({ outcome }) => outcome === 'interrupted').length >= this.#context.settings.interruptions)
        await this.#bury(batch, 'the process ended during each attempt', item.attempts)
      else {
        let permitted = await this.#permitted(batch)
        // Checked again after the question, because rules may change while it is open.
        if (permitted !== undefined && todo.asks !== undefined)
          permitted = (await this.#approved(permitted)) ? await this.#permitted(permitted) : undefined
        if (permitted !== undefined) await this.#unlessWithheld(permitted)
      }
    } catch (error) {
      this.#context.failed(server, 'Running an event failed', error)
      this.#rest(items)
    }
  }

  /** Delays the items. */
  #rest(items: readonly Item[]): void {
    for (const item of items) item.notBefore = this.#context.clock.now() + restMs
  }

  /** The batch, without items that are done or no longer ours. */
  async #batch(server: string, items: readonly Item[]): Promise<Batch | undefined> {
    const jobs: Work[] = []
    for (const item of items) {
      const todo = await this.#context.body(server, item)
      if (todo === undefined) this.#context.gone(item)
      else jobs.push({ item, todo })
    }
    const [first, ...rest] = jobs
    const fence = this.#context.owners.fence(server)
    if (fence === undefined) for (const item of items) this.#context.gone(item)
    return first === undefined || fence === undefined ? undefined : { server, jobs: [first, ...rest], fence }
  }

  /** Refuses events that have been forbidden since they were accepted; the others of the batch go on. */
  async #permitted(batch: Batch): Promise<Batch | undefined> {
    const jobs: Work[] = []
    for (const work of batch.jobs) {
      const said = await this.#forbidden(batch.server, work.todo)
      if (said === undefined) jobs.push(work)
      else await this.#refuse({ ...batch, jobs: [work] }, said)
    }
    const [first, ...rest] = jobs
    return first === undefined ? undefined : { ...batch, jobs: [first, ...rest] }
  }

  /** Why an event may not run any more. A rate limit does not count: the event was admitted. */
  async #forbidden(server: string, { event, admitted = {} }: Todo): Promise<Why | undefined> {
    const { policy } = this.#context.options
    const { featureSet } = event
    const push = askedOf(server, event)
    // Subscribed events belong to no feature set.
    const forbidden = (admitted.subscription === undefined ? [push, { kind: 'set', server, featureSet } as const] : [push])
      .map(asked => policy?.explain(asked).verdict)
      .find(said => said?.do === 'deny' && said.why.code === 'POLICY_DENIED' && said.retryAfterMs === undefined)
    if (forbidden?.do === 'deny') return forbidden.why
    return policy?.refusal?.(server, featureSet, ['pushEvents', 'channels.incoming'], admitted)
  }

  /** Asks for approval. A refusal ends the events. */
  async #approved(batch: Batch): Promise<boolean> {
    const { policy } = this.#context.options
    const asked = askedOf(batch.server, batch.jobs[0].todo.event)
    const verdict = await policy?.decide(asked)
    if (policy === undefined || verdict === undefined || verdict.do === 'allow' || verdict.do === 'coalesce') return true
    const answer = verdict.do === 'ask' ? await policy.approve(asked, verdict) : { yes: false, why: verdict.why }
    if (answer.yes) return true
    await this.#refuse(batch, answer.why ?? notApproved(verdict.do === 'ask' ? verdict.rule : 'policy'))
    return false
  }

  /** Runs the batch, or holds it where a budget is exhausted. */
  async #unlessWithheld(batch: Batch): Promise<void> {
    const { featureSet } = batch.jobs[0].todo.event
    const said = await this.#context.options.withheld?.(batch.server, featureSet)
    if (said === undefined) await this.#attempt(batch)
    else await this.#hold(batch, said, batch.jobs[0].item.attempts)
  }

  /** Holds the events in their place. This is no failure. */
  async #hold(batch: Batch, said: WithheldReason, attempts: readonly Attempt[]): Promise<void> {
    const { retryAfterMs, ...because } = said
    if (retryAfterMs === undefined) return this.#refuse(batch, because, attempts)
    const notBefore = this.#context.clock.now() + retryAfterMs
    const stored = batch.jobs.flatMap(work => [
      check(inboxKeys.todo(batch.server, work.item.seq), work.item.version),
      put(inboxKeys.try(batch.server, work.item.seq), JSON.stringify(attempts)),
      put(
        inboxKeys.seen(batch.server, work.todo.event.eventId),
        JSON.stringify({ ...seenOf(work.item.seq, work.todo, 'waiting'), why: because, notBefore }),
      ),
    ])
    if (!(await this.#holds(batch, [batch.fence, ...stored]))) return
    for (const { item } of batch.jobs) Object.assign(item, { attempts, notBefore, held: true })
    this.#tell(batch, because, 'held')
  }

  /** Ends the events without a run. */
  async #refuse(batch: Batch, because: Why, attempts = batch.jobs[0].item.attempts): Promise<void> {
    if (await this.#commit(batch, this.#ended(batch, 'refused', attempts, because))) this.#tell(batch, because, 'refused')
  }

  /** Reports a diagnostic for each event. */
  #tell({ server, jobs }: Batch, what: Why, outcome: InboxNote['outcome']): void {
    for (const { todo } of jobs) this.#context.told(server, what, { ...aboutOf(todo.event, todo), outcome })
    this.#changed({ server, jobs })
  }

  /** Something else is known of the events now. */
  #changed({ server, jobs }: Pick<Batch, 'server' | 'jobs'>): void {
    for (const { todo } of jobs) this.#context.options.onChange?.(server, todo.event.eventId)
  }

  /** Records the attempt and runs it. */
  async #attempt(batch: Batch): Promise<void> {
    const { clock, runners, options } = this.#context
    const [{ item, todo }] = batch.jobs
    const attempt: Attempt = { n: item.attempts.length + 1, at: clock.now(), by: runners.id, outcome: 'running' }
    const attempts = [...item.attempts, attempt]
    const begin = [
      batch.fence,
      ...batch.jobs.flatMap(work => [
        check(inboxKeys.todo(batch.server, work.item.seq), work.item.version),
        put(inboxKeys.try(batch.server, work.item.seq), JSON.stringify(attempts)),
      ]),
    ]
    if (!this.#writesBegin && !(await this.#holds(batch, begin))) return
    for (const work of batch.jobs) work.item.attempts = attempts
    const through = throughOf(batch)
    this.#context.chains.began(todo.inferenceId, todo.depth ?? 1, [batch.server, ...through])
    const leave = options.policy?.enter(askedOf(batch.server, todo.event))
    try {
      await this.#hand(batch, this.#entry(batch, attempts, begin))
    } catch (error) {
      if (batch.jobs[0].item.state === 'ready') await this.#failed(batch, error)
    } finally {
      leave?.()
      this.#changed(batch)
    }
  }

  /** Calls the run function with a time limit. */
  async #hand(batch: Batch, entry: InboxEntry): Promise<void> {
    const { clock, settings } = this.#context
    const over = new AbortController()
    const cancel = clock.setTimeout(
      () => over.abort(new Error(`The event took longer than ${settings.runMs} ms (the limit)`)),
      settings.runMs,
      true,
    )
    const signal = AbortSignal.any([over.signal, this.#ending.signal])
    try {
      await unlessAborted(
        Promise.resolve().then(() => this.#run(entry, signal)),
        signal,
      )
      if (batch.jobs[0].item.state === 'ready') await this.#settle(batch, entry)
    } finally {
      cancel()
    }
  }

  /** What the run function gets. */
  #entry(batch: Batch, attempts: readonly Attempt[], begin: readonly Op[]): InboxEntry {
    const { server, jobs } = batch
    const done = (): readonly Op[] => this.#ended(batch, 'done', attempts)
    return {
      server,
      event: jobs[0].todo.event,
      events: jobs.map(({ todo }) => todo.event),
      through: throughOf(batch),
      inferenceId: jobs[0].todo.inferenceId,
      attempt: attempts.length,
      attempts,
      begin,
      // A getter, because `done` depends on the attempts at the time of the commit.
      get done() {
        return done()
      },
      commit: ops => this.#commit(batch, [...done(), ...ops]),
    }
  }

  /** Marks the events as done, unless the run has committed that already. */
  async #settle(batch: Batch, entry: InboxEntry): Promise<void> {
    const { item } = batch.jobs[0]
    const there = await this.#context.store.get(inboxKeys.todo(batch.server, item.seq))
    if (there?.version !== item.version) for (const work of batch.jobs) this.#context.gone(work.item)
    else await this.#commit(batch, entry.done)
  }

  /** Commits the end of a batch. False where it is no longer ours or already ended. */
  async #commit(batch: Batch, ops: readonly Op[]): Promise<boolean> {
    const written = await this.#holds(batch, ops)
    if (written) for (const { item } of batch.jobs) this.#context.gone(item)
    return written
  }

  /** Commits an intermediate state. */
  async #holds(batch: Batch, ops: readonly Op[]): Promise<boolean> {
    const outcome = await this.#context.store.commit(ops)
    if (!outcome.ok) await this.#look(batch)
    return outcome.ok
  }

  /** After a failed commit: finds out whether the server is still ours and the events still exist. */
  async #look({ server, jobs, fence }: Batch): Promise<void> {
    const { store } = this.#context
    const owner = fence.op === 'check' ? await store.get(fence.key) : undefined
    if (fence.op === 'check' && owner?.version !== fence.version) return this.#context.lost(server)
    for (const { item } of jobs) {
      const entry = await store.get(inboxKeys.todo(server, item.seq))
      if (entry?.version !== item.version) this.#context.gone(item)
    }
  }

  /** Operations that end the events in a state. */
  #ended({ server, jobs, fence }: Batch, state: InboxState, attempts: readonly Attempt[], because?: Why): readonly Op[] {
    const { keepMs } = this.#context.settings
    const ended = state === 'done' ? attempts.map(finished) : attempts
    return [
      fence,
      ...jobs.flatMap(work => {
        const { seq, version } = work.item
        const seen: SeenEvent = { ...seenOf(seq, work.todo, state), attempts: ended, ...(because && { why: because }) }
        const record = put(inboxKeys.seen(server, seen.eventId), JSON.stringify(seen), { ttl: keepMs })
        return [remove(inboxKeys.todo(server, seq), version), remove(inboxKeys.try(server, seq)), record]
      }),
      add(inboxKeys.count(server), -jobs.length),
    ]
  }

  /** Records a failure: hold, retry with backoff, or dead. */
  async #failed(batch: Batch, error: unknown): Promise<void> {
    const { clock, settings, random } = this.#context
    const [{ item }] = batch.jobs
    // A run that was cut off by closing has not failed: the next process starts it again.
    const outcome = this.#ending.signal.aborted ? 'interrupted' : 'failed'
    const last = item.attempts.at(-1) as Attempt
    if (error instanceof RunLater) {
      const before = item.attempts.slice(0, -1).filter(each => each.outcome !== 'held')
      return this.#hold(batch, error.why, [...before, { ...last, outcome: 'held', error: clip(error.message, errorLength) }])
    }
    const attempts = [...item.attempts.slice(0, -1), { ...last, outcome, error: clip(messageOf(error), errorLength) } as const]
    const failures = attempts.filter(each => each.outcome === 'failed').length
    if (failures >= settings.attempts) return this.#bury(batch, clip(messageOf(error)), attempts)
    const wait = Math.min(settings.longestMs, settings.firstMs * 2 ** Math.max(0, failures - 1)) * (0.5 + random() / 2)
    // Counted from the failure, not from its record: a slow store makes nobody wait longer.
    const notBefore = clock.now() + wait
    const stored = batch.jobs.map(work => put(inboxKeys.try(batch.server, work.item.seq), JSON.stringify(attempts)))
    if (!(await this.#holds(batch, [batch.fence, ...stored]))) return
    for (const work of batch.jobs) {
      work.item.attempts = attempts
      work.item.notBefore = notBefore
    }
  }

  /** Gives up the events as dead, so that those behind them can run. */
  async #bury(batch: Batch, error: string, attempts: readonly Attempt[]): Promise<void> {
    const { server, jobs } = batch
    const { keepMs } = this.#context.settings
    const message = `Event ${quoted(jobs[0].todo.event.eventId)} failed ${attempts.length} times and is not retried: ${error}`
    const because = why('EVENT_DEAD', 'inbox.attempts', message, 'Correct the cause, then replay the event')
    const letters = jobs.map(({ item, todo }) => {
      const dead: Dead = { ...todo, attempts, why: because }
      return put(inboxKeys.dead(server, item.seq), JSON.stringify(dead), { ttl: keepMs })
    })
    if (await this.#commit(batch, [...this.#ended(batch, 'dead', attempts, because), ...letters]))
      this.#tell(batch, because, 'failure')
  }
}

/** All servers that contributed to any event of the batch. */
function throughOf({ jobs }: Batch): readonly string[] {
  return [...new Set(jobs.flatMap(({ todo }) => todo.through ?? []))].sort()
}

/** The reason where nobody approved an event. */
function notApproved(rule: string): Why {
  return why('NOT_APPROVED', rule, 'The event was not approved', 'Approve it when asked, or allow it in the policy')
}

/** Marks the last attempt as done. */
function finished(attempt: Attempt, at: number, all: readonly Attempt[]): Attempt {
  return at === all.length - 1 ? { ...attempt, outcome: 'done' } : attempt
}
