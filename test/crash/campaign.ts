/** Many lives on one store: each is asked for much, killed, and followed by the next; after the last one everything is held to account. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { saga } from 'vivarium/client'
import { openStore } from 'vivarium/stores'
import { fastClock, inFastTime, speed } from './fast-clock.ts'
import type { LifeSpec } from './life.ts'
import { Line } from './line.ts'
import { broken, type Finding } from './operation.ts'
import { fateOf, type UndoOutcome } from './plan.ts'
import { type Life, startLife } from './process.ts'
import { integrityOf, residueOf } from './residue.ts'
import { readWitness } from './witness.ts'
import { Workload } from './workload.ts'

export interface CampaignOptions {
  readonly store: 'sqlite' | 'postgres'
  /** Where Postgres is. */
  readonly url?: string
  /** For the files of this campaign alone. */
  readonly folder: string
  readonly seed: number
  readonly kills: number
  /** What is done wrong on purpose: calls are repeated under other keys, or the store says "written" too early. */
  readonly wrong?: 'keys' | 'store'
  /** How every life ends. Default: as the seed has it. */
  readonly fate?: UndoOutcome
  /** Nothing is asked for but calls that must not happen twice. */
  readonly onlyCalls?: boolean
  readonly onKill?: (kills: number) => void
}

export interface CampaignReport {
  readonly findings: readonly Finding[]
  /** From the start of a process to its first answer, in milliseconds. */
  readonly restarts: readonly number[]
  /** How many died where. */
  readonly deaths: ReadonlyMap<string, number>
  /** Writes of the store that no failpoint names. */
  readonly unaimed: readonly string[]
  /** How many operations ended how. */
  readonly ends: ReadonlyMap<string, number>
}

/** A life that does not come to its failpoint is killed after so long; one that must come to it is given its time. */
const longestMs = 1_500
const certainMs = 60_000
/** One that neither listens nor dies, or does not end when it is told to, is killed after so long, and counts as broken. */
const hangsMs = 30_000
/** In fast time: how long a lease lasts that nobody renews. */
const leaseMs = 6_000

export async function runCampaign(options: CampaignOptions): Promise<CampaignReport> {
  const campaign = new Campaign(options)
  for (let kill = 0; kill < options.kills; kill++) {
    await campaign.lifeWith(options.fate ?? fateOf(options.seed, options.store, kill))
    options.onKill?.(kill + 1)
  }
  return campaign.account()
}

class Campaign {
  readonly #options: CampaignOptions
  readonly #spec: LifeSpec
  readonly #file: string
  readonly #line = new Line()
  readonly #workload: Workload
  readonly #findings: Finding[] = []
  readonly #restarts: number[] = []
  readonly #deaths = new Map<string, number>()

  constructor(options: CampaignOptions) {
    const { store, folder, seed, url = '', wrong, onlyCalls = false } = options
    this.#options = options
    this.#file = join(folder, `${store}.db`)
    const witness = join(folder, `${store}.effects`)
    writeFileSync(witness, '')
    this.#spec = {
      store: store === 'sqlite' ? `sqlite:${this.#file}` : url,
      witness,
      epoch: Date.now(),
      ...(wrong === 'store' ? { lies: true } : {}),
    }
    this.#workload = new Workload(seed, store, { careless: wrong === 'keys', onlyCalls })
  }

  /** One life, from its start to its end. */
  async lifeWith(fate: UndoOutcome): Promise<void> {
    const life = startLife(fate.kind === 'failpoint' ? { ...this.#spec, death: fate.death } : this.#spec)
    let killed = false
    const killAfter = (ms: number): NodeJS.Timeout =>
      setTimeout(() => {
        killed = true
        life.kill()
      }, ms)
    let timer = fate.kind === 'starting' ? killAfter(fate.ms) : undefined
    const atMostMs = this.#options.fate === undefined ? longestMs : certainMs
    if ((await this.#arrive(life)) && fate.kind !== 'starting') timer = killAfter(fate.kind === 'running' ? fate.ms : atMostMs)
    if (!life.dead) await this.#workload.keepBusy(this.#line)
    const complaint = await life.over
    clearTimeout(timer)
    if (complaint !== undefined) this.#findings.push(broken(`a life complained: ${complaint}`))
    this.#died(fate, killed)
    if (this.#options.store === 'sqlite') this.#findings.push(...integrityOf(this.#file))
  }

  /** Decides what is undecided, asks again for all that was answered, and looks at what is left. */
  async account(): Promise<CampaignReport> {
    const stuck = await this.#calmLife(async () => {
      await this.#workload.settle(this.#line)
      const client = await this.#line.client('2026-07-28')
      return new Set(JSON.parse((await client.callTool('stuck')).text) as string[])
    })
    // Leases of the dead are over then, and whoever comes next finds out and tidies up.
    await pause(leaseMs / speed)
    await this.#calmLife(async () => {
      await (await this.#line.client('2026-07-28')).callTool('set', { id: 'tidy' })
      await pause(leaseMs / speed)
    })
    await this.#line.close()
    await pause(leaseMs / speed)
    return this.#report(stuck ?? new Set())
  }

  async #report(stuck: ReadonlySet<string>): Promise<CampaignReport> {
    const { store: url, witness, epoch } = this.#spec
    const opened = await openStore(url, { now: fastClock(epoch).now })
    const store = this.#options.store === 'postgres' ? inFastTime(opened, epoch) : opened
    const sagas = await saga.stuck({ store })
    const aftermath = { seen: readWitness(witness), store, stuck: new Set([...stuck, ...sagas.map(({ id }) => id)]) }
    const findings = [...this.#findings, ...this.#workload.findings]
    const ends = new Map<string, number>()
    for (const operation of this.#workload.all) {
      findings.push(...(await operation.judge(aftermath)))
      ends.set(operation.end, (ends.get(operation.end) ?? 0) + 1)
    }
    findings.push(...(await residueOf(store)))
    await opened.close()
    if (this.#options.store === 'sqlite') findings.push(...integrityOf(this.#file))
    const unaimed = aftermath.seen.all('unaimed')
    return { findings: distinct(findings), restarts: this.#restarts, deaths: this.#deaths, unaimed, ends }
  }

  /** A life that nobody kills. */
  async #calmLife<T>(work: () => Promise<T>): Promise<T | undefined> {
    const life = startLife(this.#spec)
    try {
      if (await this.#arrive(life)) return await work()
      this.#findings.push(broken('a life that nobody killed did not come up'))
      return undefined
    } finally {
      await this.#inTime(life, 'end', life.end())
      const complaint = await life.over
      if (complaint !== undefined) this.#findings.push(broken(`a life complained: ${complaint}`))
    }
  }

  /** Whether it lives to give a first answer. */
  async #arrive(life: Life): Promise<boolean> {
    const url = await this.#inTime(life, 'listen', life.url)
    if (url === undefined) return false
    this.#line.begin(life, url)
    try {
      const first = await this.#line.plain('first')
      const { status } = await this.#inTime(life, 'answer', first.ask('tools/call', { name: 'alive' }))
      if (status !== 200) this.#findings.push(broken(`the first answer of a life had the status ${status}`))
      this.#restarts.push(performance.now() - life.startedAt)
      return true
    } catch {
      await life.over
      return false
    }
  }

  async #inTime<T>(life: Life, what: string, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      this.#findings.push(broken(`a life did not ${what} within ${hangsMs / 1000} s`))
      life.kill()
    }, hangsMs)
    try {
      return await work
    } finally {
      clearTimeout(timer)
    }
  }

  #died(fate: UndoOutcome, killed: boolean): void {
    const where =
      fate.kind !== 'failpoint'
        ? `killed while ${fate.kind}`
        : killed
          ? `killed while running, not having reached ${fate.death.name} ${fate.death.phase}`
          : `${fate.death.name} ${fate.death.phase}`
    this.#deaths.set(where, (this.#deaths.get(where) ?? 0) + 1)
  }
}

/** What was found more than once counts once. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map(finding => [`${finding.kind} ${finding.what}`, finding])).values()]
}
