/** The figures of the page on performance as charts, from what `npm run bench -- --json docs/performance.json` wrote. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cell, figures, type Results } from '../bench/results.ts'
import { root } from '../scripts/lib/files.ts'
import { html, type Markup } from './html.ts'

const file = join(root, 'docs', 'performance.json')

/** What the bench calls each contender, and what readers do; in this order, with these colours. */
const CONTENDERS: readonly (readonly [key: string, name: string])[] = [
  ['vivarium', 'Vivarium'],
  ['vivarium-json', 'Vivarium (JSON Schema)'],
  ['mcp-lite', 'mcp-lite'],
  ['sdk-v1', 'SDK v1'],
  ['sdk-v2', 'SDK v2'],
]

export interface Bar {
  readonly name: string
  readonly value: number
  /** Which colour of the style sheet, from 1. */
  readonly colour: number
}

export interface Chart {
  readonly title: string
  readonly note: string
  readonly unit: string
  readonly groups: readonly { readonly name: string; readonly bars: readonly Bar[] }[]
}

/** Puts the charts under the headings that they belong to. Without the file, and with figures of a quick run, there are none. */
export function withCharts(page: string, results: Results | undefined = measured()): string {
  if (results === undefined) return page
  return chartsOf(results).reduce((text, [anchor, chart]) => {
    if (chart.groups.length === 0) return text
    return text.replace(new RegExp(`<h2 id="${anchor}">.*?</h2>\n`), heading => heading + drawChart(chart).text)
  }, page)
}

function measured(): Results | undefined {
  if (!existsSync(file)) return undefined
  const results = JSON.parse(readFileSync(file, 'utf8')) as Results
  if (!results.quick) return results
  console.log('site: docs/performance.json is of a quick run, so the page on performance has no charts')
  return undefined
}

const WORK: Readonly<Record<string, string>> = {
  echo: 'echo',
  form20: '20 properties',
  echo100k: '100 KB',
  list200: 'list of 200 tools',
}
const CARRIERS: Readonly<Record<string, string>> = { stdio: 'stdio', http: 'HTTP' }

/** By the anchor of the heading under which each stands. */
export function chartsOf(results: Results): readonly (readonly [anchor: string, chart: Chart])[] {
  const when = `Node ${results.node.replace(/^v/, '')}, ${results.when.slice(0, 10)}`
  const multiple = 'multiple of the floor'
  const server = results.server
    .filter(({ work }) => work !== 'echo100k')
    .map(row =>
      group(
        `${CARRIERS[row.carrier] ?? row.carrier} ${row.revision}, ${WORK[row.work] ?? row.work}`,
        row.cells,
        ({ ratio }) => ratio,
      ),
    )
  const clients = results.clients
    .filter(({ inFlight }) => inFlight > 1)
    .map(row => group(`${CARRIERS[row.carrier] ?? row.carrier} ${row.revision}`, row.cells, ({ ratio }) => ratio))
  const cold = results.cold
    .filter(({ opening }) => opening === 'initialize')
    .map(row => group(`${CARRIERS[row.carrier] ?? row.carrier}`, row.cells, ({ ratio }) => ratio))
  const only = (groups: Chart['groups']) => groups.filter(({ bars }) => bars.length > 0)
  return [
    [
      'server-cpu-as-a-multiple-of-the-floor',
      {
        title: 'CPU per request, as a multiple of the floor',
        note: `Shorter is better. ${when}.`,
        unit: multiple,
        groups: only(server),
      },
    ],
    [
      'client-cpu-per-echo-call-as-a-multiple-of-a-raw-client',
      {
        title: 'CPU per call of a client, as a multiple of a raw one',
        note: `32 calls at once. Shorter is better. ${when}.`,
        unit: multiple,
        groups: only(clients),
      },
    ],
    [
      'start-and-memory',
      {
        title: 'Cold start to the first answer, as a multiple of the floor',
        note: `Shorter is better. ${when}.`,
        unit: multiple,
        groups: only(cold),
      },
    ],
  ]
}

function group<Figures extends object>(
  name: string,
  cells: Readonly<Record<string, Cell<Figures>>>,
  value: (cell: Figures) => number,
): Chart['groups'][number] {
  const bars = CONTENDERS.flatMap(([key, shown], at) => {
    const found = figures(cells[key])
    return found === undefined || !Number.isFinite(value(found)) ? [] : [{ name: shown, value: value(found), colour: at + 1 }]
  })
  return { name, bars }
}

const WIDTH = 720
const NAMES = 176
const VALUES = 52
const BAR = 18
const STEP = 24
const GAP = 40

/** Horizontal bars in groups, with every figure in words beside its bar. */
export function drawChart({ title, note, unit, groups }: Chart): Markup {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)), 1)
  const scale = (WIDTH - NAMES - VALUES) / most
  let y = 0
  const drawn = groups.map(({ name, bars }) => {
    const top = y
    y += GAP + bars.length * STEP
    const rows = bars.map(({ name, value, colour }, at) => {
      const middle = top + GAP + at * STEP
      const width = Math.max(value * scale, 2)
      return html`<text class="of" x="${NAMES - 12}" y="${middle + 13}" text-anchor="end">${name}</text><rect class="bar-${colour}" x="${NAMES}" y="${middle}" width="${width.toFixed(1)}" height="${BAR}" rx="4"/><text x="${(NAMES + width + 8).toFixed(1)}" y="${middle + 13}">${shown(value)}</text>`
    })
    return html`<text class="name" x="0" y="${top + 26}">${name}</text>${rows}`
  })
  const floor = (NAMES + scale).toFixed(1)
  const words = groups
    .map(({ name, bars }) => `${name}: ${bars.map(each => `${each.name} ${shown(each.value)}`).join(', ')}`)
    .join('. ')
  return html`<figure class="chart"><figcaption>${title}<small>${note}</small></figcaption><svg viewBox="0 0 ${WIDTH} ${y + 8}" role="img" aria-label="${`${title}, ${unit}. ${words}`}"><path class="axis" d="M${floor} ${GAP - 10}V${y}" stroke-dasharray="3 4"/>${drawn}</svg></figure>
`
}

const shown = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(1))
