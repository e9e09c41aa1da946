/**
 * Events from three live servers, one in twenty sent twice, to a host that is killed again and again: every accepted one must have one
 * inference and one committed turn, and those of one origin, or of one set where they have no origin, must have theirs in order.
 */
import { join } from 'node:path'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { type Accepted, drained, judge, runningAttempts, withStore } from './inbox-judge.ts'
import { endHost, type HostProcess, killHost, Sender, startHost } from './inbox-sender.ts'

export interface InboxCampaign {
  readonly folder: string
  readonly events: number
  readonly kills: number
  readonly random: () => number
}

export interface InboxReport {
  readonly accepted: number
  readonly repeated: number
  readonly turns: number
  /** Attempts that a kill cut off, as the inbox lists them. */
  readonly interrupted: number
  /** New events, while a host was up and events were sent. Its time begins when its first server is connected. */
  readonly perSecond: number
  readonly findings: readonly string[]
}

const senders = ['alpha', 'beta', 'gamma']
/** Of each sender; within one it waits for the answer before it sends the next. */
const channels = 36
/** Sets whose events have no origin. */
const bare = ['crash.bare-0', 'crash.bare-1', 'crash.bare-2', 'crash.bare-3']
const lanes = channels + bare.length

export async function killInbox({ folder, events, kills, random }: InboxCampaign): Promise<InboxReport> {
  const servers = await Promise.all(senders.map(name => Sender.start(name, ['crash.events', ...bare])))
  const store = `sqlite:${join(folder, 'inbox.db')}`
  const spec = { store, servers: Object.fromEntries(servers.map(({ name, url }) => [name, url])), modelMs: 2, unlimited: true }
  const findings: string[] = []
  const accepted = new Map<string, Accepted>()
  const cutOff = new Set<string>()
  const broken = Promise.withResolvers<never>()
  const up = new UpTime()
  const start = (): Promise<HostProcess> => startHost(spec, { serving: () => up.begin(), failed: broken.reject })
  let [repeated, over] = [0, false]
  let host = await start()
  const perLane = Math.ceil(events / (senders.length * lanes))

  const sendLane = async (server: Sender, at: number): Promise<void> => {
    const [set = 'crash.events', channel] = at < bare.length ? [bare[at]] : [undefined, `c${at}`]
    const lane = `${server.name}-${channel ?? set}`
    for (let n = 0; n < perLane; n++) {
      const eventId = `${lane}-${n}`
      const answer = await server.push({ set, eventId, channel })
      if (!answer.accepted) findings.push(`${eventId} was refused: ${answer.reason}`)
      else accepted.set(eventId, { server: server.name, lane, n, inferenceId: answer.inferenceId ?? '' })
      if (random() >= 0.05) continue
      // Once the server has forgotten it, it is sent again.
      await turn()
      repeated++
      const again = await server.push({ set, eventId, channel })
      const [first, second] = [accepted.get(eventId)?.inferenceId, again.accepted ? again.inferenceId : again.reason]
      if (first !== second) findings.push(`${eventId}: answered ${second} after ${first}`)
    }
  }
  const killing = async (): Promise<void> => {
    for (let n = 1; n <= kills; n++) {
      while (accepted.size < (events * (n - random())) / (kills + 1) && !over) await pause(1)
      up.end()
      await killHost(host)
      for (const each of await withStore(store, runningAttempts)) cutOff.add(each)
      host = await start()
    }
  }
  const killed = killing()
  killed.catch(broken.reject)
  const sent = servers.flatMap(server => Array.from({ length: lanes }, (_, at) => sendLane(server, at)))
  await Promise.race([Promise.all(sent), broken.promise])
  const seconds = up.seconds
  over = true
  await killed
  await drained(store)
  await endHost(host)
  for (const server of servers) await server.close()
  if (accepted.size !== senders.length * lanes * perLane) findings.push(`${accepted.size} events were accepted`)
  const found = await withStore(store, opened => judge(opened, accepted, cutOff))
  const perSecond = Math.round(accepted.size / seconds)
  return { accepted: accepted.size, repeated, perSecond, ...found, findings: [...findings, ...found.findings] }
}

/** How long there was a host, by the clock that only goes forward. */
class UpTime {
  #ms = 0
  #since: number | undefined = undefined

  begin(): void {
    this.#since = performance.now()
  }

  end(): void {
    if (this.#since !== undefined) this.#ms += performance.now() - this.#since
    this.#since = undefined
  }

  get seconds(): number {
    return (this.#ms + (this.#since === undefined ? 0 : performance.now() - this.#since)) / 1000
  }
}
