/**
 * `npm run conformance`: holds the everything server and client against the official suite, for every revision that it knows, and
 * prints one line each. Status 1 if anything failed. Raw results stay in .cache/conformance/results.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../lib/files.ts'
import { judgeClient } from './client-side.ts'
import { cache, installSuite } from './install.ts'
import { summarise, type Verdict } from './judge.ts'
import { type Line, leftOut, planLines, REVISIONS } from './plan.ts'
import { judgeServer } from './server-side.ts'
import { openSuite } from './suite.ts'

const HELP = `npm run conformance -- [options]

  --side server|client    only one side
  --revision LIST         only these of ${REVISIONS.join(', ')}
  --only LIST             only these scenarios, by name or beginning (tools-, auth/scope)
  --verbose               a line for every scenario
  --server COMMAND        judge another server; {port} in the command becomes a free port, it answers at /mcp
  --gateway               put a gateway before the server, which speaks the same revision behind it
  --upstream REVISION     with --gateway: the server speaks this one behind it, or newest
  --client COMMAND        judge another client; the URL is its last argument
`

const { values: options } = parseArgs({
  options: {
    side: { type: 'string' },
    revision: { type: 'string' },
    only: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    server: { type: 'string', default: example('everything-server', '--port {port}') },
    gateway: { type: 'boolean', default: false },
    upstream: { type: 'string' },
    client: { type: 'string', default: example('everything-client', '') },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  console.log(HELP)
  process.exit(0)
}

const suite = openSuite(installSuite())
const listed = { server: suite.list('server'), client: suite.list('client') }
const lines = choose(planLines(listed))
if (lines.length === 0) {
  console.error(`conformance: nothing fits these options\n\n${HELP}`)
  process.exit(1)
}
let failed = false
for (const { line, whole } of lines) {
  const folder = join(cache, 'results', line.title.replaceAll(' ', '-'))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const verdicts =
    line.side === 'server'
      ? await judgeServer(line, serverCommand(line), whole, suite, folder)
      : await judgeClient(line, options.client, suite, folder)
  report(line, verdicts, folder)
}
reportLeftOut()
process.exit(failed ? 1 : 0)

function example(name: string, args: string): string {
  return `'${process.execPath}' '${join(root, 'dist', 'examples', `${name}.js`)}' ${args}`.trim()
}

/** The server itself, or a gateway that starts it and stands before it. */
function serverCommand({ revision }: Line): string {
  if (!options.gateway) return options.server
  const script = join(root, 'scripts', 'conformance', 'behind-gateway.ts')
  return `'${process.execPath}' '${script}' {port} ${options.upstream ?? revision} ${JSON.stringify(options.server.replaceAll('{port}', '{behind}'))}`
}

/** The lines that the options leave over; `whole`: with all their scenarios. */
function choose(all: readonly Line[]): { line: Line; whole: boolean }[] {
  const only = options.only?.split(',')
  const revisions = options.revision?.split(',')
  return all
    .filter(line => (!options.side || line.side === options.side) && (!revisions || revisions.includes(line.revision)))
    .map(line => ({
      line: only ? { ...line, scenarios: line.scenarios.filter(name => only.some(start => name.startsWith(start))) } : line,
      whole: !only,
    }))
    .filter(({ line, whole }) => whole || line.scenarios.length > 0)
}

function report(line: Line, verdicts: readonly Verdict[], folder: string): void {
  for (const { scenario, passed, failures } of verdicts) {
    if (options.verbose && failures.length === 0) console.log(`  ✓ ${scenario} (${passed})`)
    for (const { id, message } of failures) console.log(`  ✗ ${scenario}  ${id}: ${shorten(message)}`)
  }
  const bad = verdicts.some(({ failures }) => failures.length > 0)
  if (bad) console.log(`  raw results: ${relative(root, folder)}`)
  if (bad) failed = true
  console.log(summarise(line.title, verdicts))
}

/** All of them by name; one without a reason is new in the suite and fails the run until somebody has looked at it. */
function reportLeftOut(): void {
  for (const { side, name, why } of leftOut(listed)) {
    if (options.side && side !== options.side) continue
    if (why === undefined) failed = true
    console.log(`left out: ${side} ${name}: ${why ?? 'NO REASON. Give it a line or a reason in scripts/conformance/plan.ts'}`)
  }
}

function shorten(message: string): string {
  const flat = options.verbose ? message.trim().replace(/\n/g, '\n      ') : message.replace(/\s+/g, ' ').trim()
  return options.verbose || flat.length <= 300 ? flat : `${flat.slice(0, 300)} …`
}
