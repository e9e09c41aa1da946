/** `vivarium doctor`: why a server or a config does not work, and what to do about it. */
import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { ConfigFault, ConfiguredServer, HostConfig } from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type ConfigPlaces, configPlacesOf, configuredFiles, readNamed } from '../configured-servers.ts'
import { type ConnectingOptions, connectingOptions } from '../connecting.ts'
import { type Examination, examine } from '../doctor/examine.ts'
import { exitOf, type Finding, fail, WaitDisplay, warn } from '../doctor/finding.ts'
import { CliError, type Io, textAt } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { type ResolvedTarget, resolveTarget, splitTarget } from '../target.ts'
import { brief, joinedText, say } from '../terminal/text.ts'
import type { FileToUse } from '../trust/config-file.ts'
import { useFile } from '../trust/consent.ts'

/** `vivarium doctor`. */
export const doctor: Verb = (command, io) => {
  connectingOptions(
    command.argument('[target]', 'a server, or a config file (default: every config file of an MCP client on this machine)'),
  )
    .examples([
      ['vivarium doctor', 'Check all servers of all clients on this machine'],
      ['vivarium doctor ~/.cursor/mcp.json', 'Check the servers of one config file'],
      ['vivarium doctor https://example.com', 'Check an address'],
      ['vivarium doctor -- node server.js', 'Check a program'],
    ])
    .action<ConnectingOptions>(call => run(call, io))
}

/** Examines one server, the servers of one file, or those of all config files. */
async function run(call: VerbCall<ConnectingOptions>, io: Io): Promise<number> {
  const { target } = splitTarget(call)
  const [first] = target
  const places = configPlacesOf(io.env)
  const waits = new WaitDisplay(io, call.options.format === 'json')
  if (first === undefined) return examineConfigs(await found(places, io, call.options), call.options, io, places, waits)
  if (/\.(jsonc?|ya?ml)$/i.test(first) && existsSync(first))
    return examineConfigs([await used(first, await readNamed(first, places), io, call.options)], call.options, io, places, waits)
  const resolved = await resolveTarget(target, io, call.options)
  const { findings, summary } = await examine(resolved, call.options, io, waits)
  const printer = printerOf(io)
  if (call.options.format === 'json') printer.json({ target: resolved.label, works: summary !== undefined, summary, findings })
  else {
    for (const finding of findings) printFinding(finding, printer)
    if (summary !== undefined) printer.line(printer.paint.dim(summary))
  }
  return exitOf(findings)
}

/** A finding on a line, its fix below it. */
function printFinding({ level, check, message, fix }: Finding, { line, paint }: Printer, indent = ''): void {
  const mark = level === 'ok' ? paint.good('✓') : level === 'warn' ? paint.warn('!') : paint.bad('✗')
  line(say`${indent}${mark} ${paint.dim(check.padEnd(8))} ${message}`)
  if (fix !== undefined) line(say`${indent}  ${' '.repeat(8)} ${paint.dim('→')} ${fix}`)
}

/** A config file, by the program that it belongs to. */
interface NamedConfig {
  /** The program, or the file where it was named. */
  readonly name: string
  readonly config: HostConfig
  /** Why nothing of it is looked at. */
  readonly refused?: Finding
}

/** A file that may not be used is told of as such, and the others are looked at all the same. */
async function used(name: string, file: FileToUse, io: Io, options: ConnectingOptions): Promise<NamedConfig> {
  try {
    return { name, config: await useFile(file, io, options) }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const refused = fail('trust', error.message, error.fix ?? '')
    return { name, refused, config: { ...file.written, servers: new Map(), refused: new Map() } }
  }
}

/** The config files of all programs on this machine. Throws where there is none. */
async function found(places: ConfigPlaces, io: Io, options: ConnectingOptions): Promise<readonly NamedConfig[]> {
  const configs: NamedConfig[] = []
  for (const { source, file } of await configuredFiles(places)) configs.push(await used(source, file, io, options))
  if (configs.length === 0)
    throw new CliError(
      'No config file of an MCP client on this machine lists servers',
      'Pass a server or a config file: vivarium doctor TARGET',
    )
  return configs
}

/** One server of a config file, examined. */
interface Row {
  readonly server: string
  /** It is switched off in the config, and was not started. */
  readonly disabled?: boolean
  readonly examined: Examination
}

/** How many servers are started at a time. */
const atOnce = 8

/** Examines the servers of config files, a line each, and gives the exit code. */
async function examineConfigs(
  configs: readonly NamedConfig[],
  options: ConnectingOptions,
  io: Io,
  { cwd }: ConfigPlaces,
  waits: WaitDisplay,
): Promise<number> {
  const printer = printerOf(io)
  const look = inTurn((server, file) => examineServer(server, file, options, io, waits))
  const told = (write: () => void): void => (options.format === 'json' ? undefined : waits.aside(write))
  // All are begun; they are told in the order of the files, each as soon as those before it are.
  const begun = configs.map(({ name, config, refused }) => ({
    name,
    config,
    refused,
    looked: [...config.servers.values()].map(server => look(server, resolve(cwd, config.file))),
  }))
  const all: { source: string; file: string; findings: readonly Finding[]; servers: readonly Row[] }[] = []
  for (const { name, config, refused, looked } of begun) {
    const path = resolve(cwd, config.file)
    const file = relative(cwd, path).startsWith('..') ? config.file : relative(cwd, path)
    told(() => printer.line(say`${printer.paint.bold(name)}${name === file ? '' : say` ${printer.paint.dim(file)}`}`))
    const rows: Row[] = []
    for (const row of [...refusedRows(config), ...looked]) {
      const known = await row
      rows.push(known)
      told(() => printRow(known, printer))
    }
    const collisions = examineCollisions(new Map(rows.map(({ server, examined }) => [server, examined.tools])))
    const findings = [...(refused === undefined ? [] : [refused]), ...examineFile(config, path), ...collisions]
    for (const finding of findings) told(() => printFinding(finding, printer, '  '))
    all.push({ source: name, file: config.file, findings, servers: rows })
  }
  if (options.format === 'json')
    printer.json(
      all.map(({ servers, ...rest }) => ({
        ...rest,
        servers: servers.map(({ examined, ...row }) => ({ ...row, works: examined.summary !== undefined, ...examined })),
      })),
    )
  return exitOf(all.flatMap(({ findings, servers }) => [...findings, ...servers.flatMap(({ examined }) => examined.findings)]))
}

/** Servers whose entries have mistakes: nothing is started for them. */
function refusedRows({ refused }: HostConfig): readonly Row[] {
  return [...refused].map(([server, { message, fix }]) => ({
    server,
    examined: { findings: [fail('config', message, fix)], summary: undefined, tools: [] },
  }))
}

/** So many at a time; a server that stands in several files is looked at once. */
function inTurn(work: (server: ConfiguredServer, file: string) => Promise<Row>): typeof work {
  const known = new Map<string, Promise<Row>>()
  const waiting: (() => void)[] = []
  let free = atOnce
  const run = async (server: ConfiguredServer, file: string): Promise<Row> => {
    if (free === 0) await new Promise<void>(resolve => waiting.push(resolve))
    else free--
    try {
      return await work(server, file)
    } finally {
      const next = waiting.shift()
      if (next === undefined) free++
      else next()
    }
  }
  return (server, file) => {
    const key = `${server.name} ${server.digest} ${server.disabled}`
    const looked = known.get(key) ?? run(server, file)
    known.set(key, looked)
    // Who is told of a failure reads the rows one after the other.
    looked.catch(() => {})
    return looked
  }
}

/** Examines a server of a config file, unless it is disabled there. */
async function examineServer(
  { name, target, headers, disabled }: ConfiguredServer,
  file: string,
  options: ConnectingOptions,
  io: Io,
  waits: WaitDisplay,
): Promise<Row> {
  if (disabled) return { server: name, disabled, examined: { findings: [], summary: undefined, tools: [] } }
  const resolved: ResolvedTarget = {
    label: clip(name),
    again: clip(name),
    target,
    folder: dirname(file),
    options: headers === undefined ? {} : { headers },
  }
  return { server: name, examined: await examine(resolved, options, io, waits) }
}

/** One line, and the first thing that is wrong with its fix. */
function printRow({ server, disabled, examined }: Row, { line, paint }: Printer): void {
  const name = brief(server, 30).padEnd(16)
  if (disabled === true) return line(say`  ${paint.dim('-')} ${paint.dim(name)} ${paint.dim('disabled')}`)
  const { findings, summary } = examined
  const failed = findings.find(({ level }) => level === 'fail')
  const warned = findings.filter(({ level }) => level === 'warn')
  const worst = failed ?? warned[0]
  const mark = failed !== undefined ? paint.bad('✗') : warned.length > 0 ? paint.warn('!') : paint.good('✓')
  const said = [...(summary === undefined ? [] : [paint.dim(summary)]), ...(worst === undefined ? [] : [worst.message])]
  line(say`  ${mark} ${paint.name(name)} ${joinedText(said, paint.dim(' · '))}`)
  if (worst?.fix !== undefined) line(say`    ${' '.repeat(16)} ${paint.dim('→')} ${worst.fix}`)
}

// What is wrong with a config file as a whole.

/** Names that several servers of one config have: clients must prefix them, and some do not. */
function examineCollisions(servers: ReadonlyMap<string, readonly string[]>): readonly Finding[] {
  const owners = new Map<string, string[]>()
  for (const [server, names] of servers)
    for (const name of new Set(names)) owners.set(name, [...(owners.get(name) ?? []), server])
  return [...owners]
    .filter(([, all]) => all.length > 1)
    .map(([name, all]) =>
      warn(
        'collision',
        `Several servers offer a tool ${clip(name)}: ${all.map(each => clip(each)).join(', ')}`,
        'Clients that do not prefix names can call only one of them; vivarium gateway prefixes names',
      ),
    )
}

/** Mistakes that are no single server's. */
function examineFile(config: HostConfig, path: string): readonly Finding[] {
  const general = config.faults
    .filter(({ server }) => server === undefined)
    .map(fault => fail('config', `line ${fault.line}: ${fault.why.message}`, fixOf(fault)))
  return [...general, ...(general.length === 0 ? strictly(path) : [])]
}

/** A better fix for mistakes that people often make in JSON. */
function fixOf({ why: { message, fix } }: ConfigFault): string {
  if (/invalid escape/.test(message)) return 'Double each backslash in JSON: "C:\\\\Users\\\\…"; or write /'
  if (/comma expected/.test(message)) return 'Put a comma between this member and the one before it'
  return fix
}

/** Comments and commas at an end are fine for editors; other programs do not start a single server of such a file. */
function strictly(path: string): readonly Finding[] {
  if (/\.(ya?ml|jsonc)$/i.test(path)) return []
  const text = textAt(path) ?? '{}'
  try {
    JSON.parse(text)
    return []
  } catch {
    const bare = withoutStrings(text)
    const comma = /,(?=\s*[}\]])/.exec(bare)
    const comment = /\/\/|\/\*/.exec(bare)
    const [at, what] =
      comment !== null && (comma === null || comment.index < comma.index)
        ? [comment.index, 'a comment']
        : [comma?.index ?? 0, 'a comma after the last member']
    const line = text.slice(0, at).split('\n').length
    const message = `line ${line}: ${what} is not valid JSON`
    return [
      warn('config', message, 'Remove it: some clients accept it, others (such as Claude Desktop) then ignore the whole file'),
    ]
  }
}

/** The same length, with every text emptied, so that only the signs of JSON are left. */
function withoutStrings(text: string): string {
  return text.replace(/"(?:[^"\\\n]|\\.)*"/g, found => `"${' '.repeat(found.length - 2)}"`)
}
