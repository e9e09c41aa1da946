/**
 * The web console of a gateway: what its page weighs, how soon it is there, how it answers while much is told, and what the gateway pays
 * for it, with nobody looking and with the page open.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningBrowser, startBrowser, type Tab } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { root } from '../../scripts/lib/files.ts'
import { AnswerCheck } from '../answers.ts'
import type { Contender } from '../contenders.ts'
import { openHttp } from '../load/http.ts'
import { startHttp } from '../load/http-server.ts'
import type { Target } from '../load/target.ts'
import type { Options } from '../options.ts'
import { cpuMicros } from '../processes.ts'
import { type ConsoleRow, failure } from '../results.ts'
import { median, quantile } from '../stats.ts'
import { type Sample, turns } from '../turns.ts'
import { works } from '../work.ts'
import { direct, gatewayBefore } from './gateway.ts'

type Done = (row: ConsoleRow) => void

const LOADS = 7
const LINES_PER_SECOND = 200
const CALLS_PER_SECOND = 2_000
const IN_FLIGHT = 32

export async function measureConsole(options: Options, done: Done): Promise<void> {
  const report = async (what: string, unit: string, most: number, measure: () => Promise<number>): Promise<void> =>
    done({ what, unit, most, cells: { console: await measure().then(value => ({ value }), failure) } })
  await report('first load, gzip', 'kB', 400, firstLoad)
  const found = findBrowser()
  if (found === undefined) {
    const missing = (): Promise<number> => Promise.reject(new Error('no browser can run on this machine; CHROMIUM may name one'))
    return report('all other figures', '', 0, missing)
  }
  const browser = await startBrowser(found)
  const behind = await startHttp(direct, 'tools', '2026-07-28')
  const folder = mkdtempSync(join(tmpdir(), 'console-'))
  try {
    await pageTimes(browser, behind.port, folder, report)
    await busyPage(browser, behind.port, folder, options, report)
    await gatewayCosts(browser, behind.port, folder, options, report)
  } finally {
    rmSync(folder, { recursive: true })
    await behind.child.stop()
    await browser.close()
  }
}

type Report = (what: string, unit: string, most: number, measure: () => Promise<number>) => Promise<void>

/** What the page fetches before it shows anything: the document, what it names, and what those import at once. */
async function firstLoad(): Promise<number> {
  const folder = join(root, 'dist', 'console')
  const files = readdirSync(folder, { recursive: true }).map(String)
  const fetched = new Set(['index.html'])
  for (const file of fetched) {
    const text = readFileSync(join(folder, file), 'utf8')
    for (const [, name = ''] of text.matchAll(/(?:src=|href=|from\s*)["'][^"']*?([\w.-]+\.(?:js|css))["']/g)) {
      const path = files.find(each => each.endsWith(name))
      if (path !== undefined) fetched.add(path)
    }
  }
  return [...fetched].reduce((sum, file) => sum + statSync(join(folder, `${file}.gz`)).size, 0) / 1000
}

async function pageTimes(browser: RunningBrowser, port: number, folder: string, report: Report): Promise<void> {
  const world = await openGateway(port, folder, ['--console'])
  const paints: number[] = []
  const usable: number[] = []
  try {
    for (let load = 0; load < LOADS; load++) {
      const tab = await browser.openTab()
      await tab.open(world.link())
      usable.push(Number(await tab.evaluate(shows('bench'))))
      paints.push(Number(await tab.evaluate(firstPaint)))
      await tab.close()
    }
  } finally {
    await world.target.stop()
  }
  await report('first paint, nothing cached', 'ms', 300, async () => median(paints))
  await report('servers shown, nothing cached', 'ms', 700, async () => median(usable))
}

/** The moment at which the page shows a text, since its navigation. */
const shows = (text: string): string => `new Promise(resolve => {
  const look = () => document.body.innerText.includes(${JSON.stringify(text)}) ? resolve(performance.now()) : requestAnimationFrame(look)
  look()
})`

const firstPaint = `new Promise(resolve => {
  new PerformanceObserver(list => {
    for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime)
  }).observe({ type: 'paint', buffered: true })
})`

async function busyPage(
  browser: RunningBrowser,
  port: number,
  folder: string,
  { quick }: Options,
  report: Report,
): Promise<void> {
  const seconds = quick ? 5 : 60
  const world = await openGateway(port, folder, ['--console', `--lines=${LINES_PER_SECOND}`])
  const tab = await browser.openTab()
  try {
    await tab.open(world.link())
    await tab.evaluate(shows('bench'))
    await tab.open(new URL('/logs', world.link()).href)
    await tab.evaluate(shows('line '))
    const heapBefore = await tab.heapBytes()
    await tab.evaluate(`(() => {
      window.told = []
      window.lost = 0
      const source = new EventSource('/api/1/events?topics=log')
      source.addEventListener('log', ({ data }) => window.told.push(Number(/line (\\d+)/.exec(data)?.[1])))
      source.addEventListener('lost', () => window.lost++)
      window.answered = []
      new PerformanceObserver(list => {
        for (const { name, duration } of list.getEntries()) if (name === 'keydown') window.answered.push(duration)
      }).observe({ type: 'event', durationThreshold: 16 })
    })()`)
    const pressed = await pressKeys(tab, seconds * 1000)
    const [answered, told, lost] = JSON.parse(
      String(await tab.evaluate('JSON.stringify([window.answered, window.told, window.lost])')),
    ) as [number[], number[], number]
    const heapAfter = await tab.heapBytes()
    const name = `${LINES_PER_SECOND} log lines a second for ${seconds} s`
    // What is answered at once is below what the browser reports.
    const all = [...answered, ...Array.from({ length: Math.max(0, pressed - answered.length) }, () => 0)]
    await report(`${name}: a key is answered, p99`, 'ms', 100, async () => quantile(all, 0.99))
    await report(`${name}: skipped`, 'lines', 0, async () => missed(told) + lost)
    await report(`${name}: heap of the page grows by`, 'MB', 40, async () => Math.max(0, heapAfter - heapBefore) / 1e6)
  } catch (error) {
    await report('a page to which much is told', '', 0, () => Promise.reject(error))
  } finally {
    await tab.close()
    await world.target.stop()
  }
}

async function pressKeys(tab: Tab, ms: number): Promise<number> {
  let pressed = 0
  for (const until = performance.now() + ms; performance.now() < until; pressed++) {
    // Moves the focus there and back, which the page has to draw.
    await tab.press(pressed % 2 === 0 ? 'Tab' : 'shift+Tab')
    await sleep(100)
  }
  return pressed
}

/** Numbers that are not there, between the first and the last. */
function missed(told: readonly number[]): number {
  const [first = 0, last = 0] = [told[0], told.at(-1)]
  return told.length === 0 ? Number.NaN : last - first + 1 - new Set(told).size
}

/** Three gateways in turn: without a console, with one that nobody looks at, and with an open page. */
async function gatewayCosts(
  browser: RunningBrowser,
  port: number,
  folder: string,
  { timing }: Options,
  report: Report,
): Promise<void> {
  const targets: Target[] = []
  try {
    const plain = await openGateway(port, folder, [])
    const unseen = await openGateway(port, folder, ['--console'])
    const seen = await openGateway(port, folder, ['--console'])
    targets.push(plain.target, unseen.target, seen.target)
    const tab = await browser.openTab()
    await tab.open(seen.link())
    await tab.evaluate(shows('bench'))
    const work = works.find(({ name }) => name === 'echo')
    if (work === undefined) throw new Error('there is no work echo')
    const named = [
      ['plain', plain.target],
      ['unseen', unseen.target],
      ['seen', seen.target],
    ] as const
    const checks = new Map(targets.map(target => [target, new AnswerCheck(work, '2026-07-28')]))
    const burst = async (target: Target): Promise<Sample> => {
      const [cpu, started] = [cpuMicros(target.pid), performance.now()]
      const { requests } = await target.run(work, checks.get(target) as AnswerCheck, IN_FLIGHT, timing.roundMs / 8)
      await sleep(Math.max(0, (requests / CALLS_PER_SECOND) * 1000 - (performance.now() - started)))
      return { cost: cpuMicros(target.pid) - cpu, count: requests }
    }
    for (const target of targets) await target.run(work, checks.get(target) as AnswerCheck, IN_FLIGHT, timing.warmMs)
    const rounds: Map<string, number>[] = []
    for (let round = 0; round < timing.rounds * 2; round++) rounds.push(await turns(named, 6, burst))
    const more = (name: string): number =>
      100 * (median(rounds.map(costs => (costs.get(name) ?? Number.NaN) / (costs.get('plain') ?? Number.NaN))) - 1)
    await report('a call through the gateway costs more with a console that nobody looks at', '%', 1, async () => more('unseen'))
    await report(`and with an open page, at ${CALLS_PER_SECOND} calls a second`, '%', 15, async () => more('seen'))
    await tab.close()
  } catch (error) {
    await report('what the gateway pays', '', 0, () => Promise.reject(error))
  } finally {
    for (const target of targets) await target.stop()
  }
}

let files = 0

async function openGateway(port: number, folder: string, words: readonly string[]) {
  const file = join(folder, `links-${++files}`)
  const given = gatewayBefore({ bench: port })
  const contender: Contender = {
    ...given,
    args: (...rest) => [...given.args(...rest), ...words.map(word => (word === '--console' ? `--console=${file}` : word))],
  }
  const target = await openHttp(contender, 'tools', '2026-07-28')
  const links = words.includes('--console') ? readFileSync(file, 'utf8').split('\n') : []
  const link = (): string => {
    const next = links.shift()
    if (next === undefined) throw new Error('no link is left')
    return next
  }
  return { target, link }
}
