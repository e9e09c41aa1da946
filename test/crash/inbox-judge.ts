/** What must be on the store after all kills: read from the logs of the conversations and from what the inbox lists. */
import { setTimeout as pause } from 'node:timers/promises'
import { Inbox } from '../../src/host/inbox/inbox.ts'
import { conversationKey, type LogRecord, listConversations } from '../../src/host/loop/conversation-log.ts'
import { openStore } from '../../src/stores/open.ts'
import { type Entry, prefixedStore, type Store } from '../../src/stores/store.ts'

const waitMs = 60_000

/** What was answered, by event: the server that sent it, its place within its lane, and the inference. */
export interface Accepted {
  readonly server: string
  readonly lane: string
  readonly n: number
  readonly inferenceId: string
}

export interface Verdict {
  readonly turns: number
  /** Attempts that a kill cut off, as the inbox lists them. */
  readonly interrupted: number
  readonly findings: readonly string[]
}

/** Works on the host's part of a store; no host need be there. */
export async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url)
  try {
    return await work(prefixedStore(store, 'host/'))
  } finally {
    await store.close()
  }
}

/** The attempts that are written as running: after a kill those that it cut off, each as `event attempt`. */
export async function runningAttempts(store: Store): Promise<readonly string[]> {
  const running: string[] = []
  for (const { key, value } of await entries(store, 'inbox/try/')) {
    const last = (JSON.parse(value) as { n: number; outcome: string }[]).at(-1)
    const todo = await store.get(key.replace('/try/', '/todo/'))
    const eventId = todo === undefined ? key : JSON.parse(todo.value).event.eventId
    if (last?.outcome === 'running') running.push(`${eventId} ${last.n}`)
  }
  return running
}

/** How many events wait, of all servers. */
async function waiting(store: Store): Promise<number> {
  const counts = await entries(store, 'inbox/count/')
  return counts.reduce((sum, { value }) => sum + Number(value), 0)
}

/** Until nothing waits any more, or nothing moves. */
export async function drained(url: string): Promise<void> {
  await withStore(url, async store => {
    for (let [count, at] = [await waiting(store), Date.now()]; count > 0; ) {
      await pause(100)
      const now = await waiting(store)
      if (now < count) [count, at] = [now, Date.now()]
      else if (Date.now() - at > waitMs) return
    }
  })
}

export async function judge(
  store: Store,
  accepted: ReadonlyMap<string, Accepted>,
  cutOff: ReadonlySet<string>,
): Promise<Verdict> {
  const findings: string[] = []
  const turns = await judgeTurns(store, accepted, findings)
  for (const { key } of await entries(store, 'inbox/')) if (/^inbox\/(todo|try|dead)\//.test(key)) findings.push(`${key} is left`)
  const interrupted = await judgeInbox(store, accepted, cutOff, findings)
  return { turns, interrupted, findings }
}

/** One turn and one answer for each event, in the order of its lane, and for nothing else. */
async function judgeTurns(store: Store, accepted: ReadonlyMap<string, Accepted>, findings: string[]): Promise<number> {
  const answered = new Set<string>()
  const inferences = new Set<string>()
  const nextOf = new Map<string, number>()
  for (const { id } of await listConversations(store)) {
    const events = new Map<number, string>()
    for (const record of await records(store, id)) {
      if (record.type === 'turn' && record.from.kind === 'event') {
        const { eventId } = record.from
        events.set(record.seq, eventId)
        if (inferences.has(record.inferenceId)) findings.push(`${eventId}: ${record.inferenceId} has two turns`)
        inferences.add(record.inferenceId)
        const told = accepted.get(eventId)?.inferenceId
        if (told !== record.inferenceId) findings.push(`${eventId}: answered ${told}, turn ${record.inferenceId}`)
      } else if (record.type === 'answer') {
        const eventId = events.get(record.seq) ?? `turn ${record.seq} of ${id}`
        const { lane = '', n = -1 } = accepted.get(eventId) ?? {}
        if (answered.has(eventId)) findings.push(`${eventId} is answered twice`)
        else if (n !== (nextOf.get(lane) ?? 0)) findings.push(`${eventId} has its turn out of order`)
        if (record.text !== `Heard of ${eventId}`) findings.push(`${eventId} is answered with ${record.text}`)
        answered.add(eventId)
        nextOf.set(lane, n + 1)
      } else if (record.type === 'ended') findings.push(`${events.get(record.seq)} ${record.status}: ${record.why.message}`)
    }
  }
  for (const eventId of accepted.keys()) if (!answered.has(eventId)) findings.push(`${eventId} has no committed turn`)
  return answered.size
}

/** Each event is told as done, with the inference that was answered; and each attempt that was cut off is told as that. */
async function judgeInbox(
  store: Store,
  accepted: ReadonlyMap<string, Accepted>,
  cutOff: ReadonlySet<string>,
  findings: string[],
): Promise<number> {
  const inbox = new Inbox({ store })
  const listed = new Set<string>()
  for (const server of new Set([...accepted.values()].map(each => each.server)))
    for (let after: string | undefined; ; ) {
      const page = await inbox.list({ server, limit: 1_000, ...(after !== undefined && { after }) })
      for (const { eventId, inferenceId, state, attempts } of page) {
        const told = accepted.get(eventId)?.inferenceId
        if (state !== 'done' || inferenceId !== told) findings.push(`${eventId} is ${state} as ${inferenceId}, answered ${told}`)
        if (attempts.at(-1)?.outcome !== 'done') findings.push(`${eventId} ended by an attempt that ${attempts.at(-1)?.outcome}`)
        for (const { n, outcome, error } of attempts) {
          if (outcome === 'interrupted') listed.add(`${eventId} ${n}`)
          if (outcome === 'failed') findings.push(`${eventId}: attempt ${n} failed: ${error}`)
        }
      }
      after = page.at(-1)?.eventId
      if (after === undefined) break
    }
  for (const each of cutOff) if (!listed.has(each)) findings.push(`${each}: cut off by a kill, and not listed as interrupted`)
  for (const each of listed) if (!cutOff.has(each)) findings.push(`${each}: listed as interrupted, and no kill cut it off`)
  return listed.size
}

async function records(store: Store, conversation: string): Promise<readonly LogRecord[]> {
  const found: LogRecord[] = []
  for (let after = 0; ; ) {
    const page = await store.read(`conversation/${conversationKey(conversation)}`, { after })
    found.push(...page.map(({ value }) => JSON.parse(value) as LogRecord))
    const last = page.at(-1)
    if (last === undefined) return found
    after = last.position
  }
}

async function entries(store: Store, prefix: string): Promise<readonly Entry[]> {
  const found: Entry[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.scan(prefix, after === undefined ? {} : { after })
    found.push(...page)
    after = page.at(-1)?.key
    if (after === undefined) return found
  }
}
