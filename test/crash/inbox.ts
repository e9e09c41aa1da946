/**
 * Events from three senders, one in twenty sent twice, to a host that is killed again and again: every accepted one must have one
 * inference and one turn, and those of one origin must have theirs in order.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createInbox } from '../../src/host/inbox/inbox.ts'
import { openStore } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/store.ts'
import type { TurnLine } from './inbox-host.ts'
import { endInboxHost, eventOf, type InboxHost, Line, startInboxHost, type Told } from './inbox-sender.ts'

export interface InboxCampaign {
  readonly folder: string
  readonly events: number
  readonly kills: number
  readonly random: () => number
}

export interface InboxReport {
  readonly accepted: number
  readonly repeated: number
  /** Attempts that a kill cut off, as the inbox lists them. */
  readonly interrupted: number
  /** While a host was up and events were sent. */
  readonly perSecond: number
  readonly findings: readonly string[]
}

const senders = ['alpha', 'beta', 'gamma']
/** Origins of each; within one a sender waits for the answer before it sends the next. */
const origins = 40
const patienceMs = 120_000

export async function killInbox({ folder, events, kills, random }: InboxCampaign): Promise<InboxReport> {
  const spec = { store: `sqlite:${join(folder, 'inbox.db')}`, turnMs: 2, unlimited: true }
  const findings: string[] = []
  const answers = new Map<string, string>()
  let [repeated, upMs, over] = [0, 0, false]
  let host = await startInboxHost(spec)
  let lines = linesTo(host)
  let upSince = performance.now()
  const perOrigin = Math.ceil(events / (senders.length * origins))

  const ask = async (server: string, eventId: string, origin: string): Promise<string | undefined> => {
    for (;;) {
      const told: Told | undefined = await lines.get(server)?.send(server, eventOf(eventId, { origin }))
      if (told === undefined) await pause(5)
      else if ('failed' in told.answer) findings.push(`${eventId}: ${told.answer.failed}`)
      else if (told.answer.accepted) return told.answer.inferenceId
      else await pause(told.answer.retryAfterMs ?? 50)
    }
  }
  const sendOrigin = async (server: string, origin: string): Promise<void> => {
    for (let n = 0; n < perOrigin; n++) {
      const eventId = `${server}-${origin}-${n}`
      answers.set(eventId, (await ask(server, eventId, origin)) ?? '')
      if (random() >= 0.05) continue
      repeated++
      const again = await ask(server, eventId, origin)
      if (again !== answers.get(eventId)) findings.push(`${eventId}: answered ${again} after ${answers.get(eventId)}`)
    }
  }
  const killing = async (): Promise<void> => {
    for (let n = 1; n <= kills; n++) {
      while (answers.size < (events * (n - random())) / (kills + 1) && !over) await pause(1)
      upMs += performance.now() - upSince
      const dead = once(host.child, 'exit')
      host.child.kill('SIGKILL')
      await dead
      host = await startInboxHost(spec)
      lines = linesTo(host)
      upSince = performance.now()
    }
  }
  const killed = killing()
  const sent = senders.flatMap(server => Array.from({ length: origins }, (_, at) => sendOrigin(server, `o${at}`)))
  await Promise.all(sent)
  over = true
  await killed
  upMs += performance.now() - upSince
  await drained(spec.store, answers.size, host)
  await endInboxHost(host)
  const { interrupted, found } = await judge(spec.store, answers, perOrigin)
  const perSecond = Math.round((answers.size + repeated) / (upMs / 1000))
  return { accepted: answers.size, repeated, interrupted, perSecond, findings: [...findings, ...found] }
}

function linesTo(host: InboxHost): ReadonlyMap<string, Line> {
  return new Map(senders.map(server => [server, new Line(host.port)]))
}

/** Until every turn is there, or none comes any more. */
async function drained(url: string, events: number, host: InboxHost): Promise<void> {
  const store = await openStore(url)
  try {
    const counts = (): Promise<number> =>
      Promise.all(senders.map(server => last(store, server))).then(all => all.reduce((a, b) => a + b))
    for (let [count, at] = [await counts(), Date.now()]; count < events && host.child.exitCode === null; ) {
      await pause(100)
      const now = await counts()
      if (now > count) [count, at] = [now, Date.now()]
      else if (Date.now() - at > patienceMs) return
    }
  } finally {
    await store.close()
  }
}

const known = new Map<string, number>()
async function last(store: Store, server: string): Promise<number> {
  for (;;) {
    const after = known.get(server) ?? 0
    const page = await store.read(`turns/${server}`, { after })
    if (page.length === 0) return after
    known.set(server, page.at(-1)?.position ?? after)
  }
}

async function judge(url: string, answers: ReadonlyMap<string, string>, perOrigin: number) {
  const store = await openStore(url)
  try {
    const found: string[] = []
    const turns = (await Promise.all(senders.map(server => turnsOf(store, server)))).flat()
    const byEvent = new Map<string, string>()
    const nextOf = new Map<string, number>()
    for (const { eventId, inferenceId } of turns) {
      if (byEvent.has(eventId)) found.push(`${eventId} has two turns`)
      byEvent.set(eventId, inferenceId)
      const at = eventId.lastIndexOf('-')
      const [origin, n] = [eventId.slice(0, at), Number(eventId.slice(at + 1))]
      if (n !== (nextOf.get(origin) ?? 0)) found.push(`${eventId} has its turn out of order`)
      nextOf.set(origin, n + 1)
    }
    for (const [eventId, inferenceId] of answers)
      if (byEvent.get(eventId) !== inferenceId) found.push(`${eventId}: answered ${inferenceId}, turn ${byEvent.get(eventId)}`)
    if (new Set(byEvent.values()).size !== answers.size) found.push('Two events share an inference')
    if (answers.size !== senders.length * origins * perOrigin) found.push(`${answers.size} events were accepted`)
    const left = (await store.scan('inbox/', {})).filter(({ key }) => /^inbox\/(todo|try|dead)\//.test(key))
    for (const { key } of left) found.push(`${key} is left`)
    return { interrupted: await interruptions(store, answers, found), found }
  } finally {
    await store.close()
  }
}

async function turnsOf(store: Store, server: string): Promise<readonly TurnLine[]> {
  const turns: TurnLine[] = []
  for (let after = 0; ; ) {
    const page = await store.read(`turns/${server}`, { after })
    turns.push(...page.map(({ value }) => JSON.parse(value) as TurnLine))
    if (page.length === 0) return turns
    after = page.at(-1)?.position ?? after
  }
}

/** Attempts that were cut off, as the inbox tells them; every event is told as done, with the inference that was answered. */
async function interruptions(store: Store, answers: ReadonlyMap<string, string>, found: string[]): Promise<number> {
  const inbox = createInbox({ store })
  let count = 0
  for (const server of senders)
    for (let after: string | undefined; ; ) {
      const page = await inbox.list({ server, limit: 1_000, ...(after !== undefined && { after }) })
      for (const { eventId, inferenceId, state, attempts } of page) {
        if (state !== 'done' || inferenceId !== answers.get(eventId)) found.push(`${eventId} is ${state} as ${inferenceId}`)
        if (attempts.at(-1)?.outcome !== 'done') found.push(`${eventId} ended by an attempt that was ${attempts.at(-1)?.outcome}`)
        count += attempts.filter(({ outcome }) => outcome === 'interrupted').length
      }
      after = page.at(-1)?.eventId
      if (after === undefined) break
    }
  return count
}
