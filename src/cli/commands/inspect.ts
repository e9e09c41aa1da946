/** `vivarium inspect`: what a server is: what it speaks, what it offers, what its tools need and cost. */
import { durationText } from '../../core/clock.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type ConnectingOptions, connectingOptions, targetAbout, withClient } from '../connecting.ts'
import type { Io } from '../io.ts'
import { asideOf, type Printer, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { liveFacts, observeConnection, type ServerFacts, serverFactsOf } from '../server-facts.ts'
import { resolveTarget, splitTarget } from '../target.ts'
import { brief, say, type Words } from '../terminal/text.ts'
import { playgroundOf, type WebOptions, webOptions } from '../web-options.ts'
import { tellFailed } from './list.ts'

/** The options of `vivarium inspect`. */
interface InspectOptions extends ConnectingOptions, WebOptions {
  /** Ask as a live host, too, where the server does not say that it is live. */
  readonly live?: boolean
  /** Show fields of frames that look secret in the console. */
  readonly reveal?: boolean
}

/** `vivarium inspect`. */
export const inspect: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .option('--live', 'Also connect as an MCP Live host if the server does not announce MCP Live')
  webOptions(command, 'Open the playground in the browser: call, watch and judge the server').option(
    '--reveal',
    'With --web: show fields of frames that look secret, too',
  )
  connectingOptions(command)
    .note('With --web nothing is printed about the server: the page shows it until you press Ctrl-C.')
    .examples([
      ['vivarium inspect https://example.com/mcp', 'Inspect a server at an address'],
      ['vivarium inspect ./server.ts --revision 2025-06-18', 'See what an older client sees'],
      ['vivarium inspect github --format json', 'Inspect a configured server, as JSON'],
      ['vivarium inspect ./server.ts --web', 'Call a server and watch its frames in the browser'],
    ])
    .action<InspectOptions>(call => run(call, io))
}

/** Collects the facts of a server and prints them. */
async function run(call: VerbCall<InspectOptions>, io: Io): Promise<number> {
  if (call.options.web === true) return playground(call, io)
  const { heard, wrap } = observeConnection()
  return withClient(
    call,
    io,
    async opened => {
      const { client, label } = opened
      const live = await liveFacts(opened, call.options.live === true)
      const facts = await asideOf(io).during('asking the server', serverFactsOf(client, heard, opened, live))
      const printer = printerOf(io)
      if (call.options.format === 'json') printer.json({ target: label, ...jsonOf(facts) })
      else print(label, facts, printer)
      return tellFailed(facts.failed, printer)
    },
    { wrap },
  )
}

/** Serves the playground for a server. */
async function playground(call: VerbCall<InspectOptions>, io: Io): Promise<number> {
  const [{ webConsole }, resolved] = await Promise.all([
    import('../web-console.ts'),
    resolveTarget(splitTarget(call).target, io, call.options),
  ])
  return webConsole({ playground: playgroundOf(resolved, call.options, io) }, call.options, io)
}

/** The manifest as its document: that is what others know it by. */
function jsonOf({ manifest, lists, failed, ...facts }: ServerFacts): object {
  return {
    ...facts,
    ...lists,
    ...(failed.length > 0 && { failed }),
    ...(manifest !== undefined && { manifest: manifest.document, manifestRevision: manifest.revision ?? null }),
  }
}

/** The facts for people, a line each. */
function print(label: string, facts: ServerFacts, printer: Printer): void {
  const { paint } = printer
  const { server, revision, speaks, era, carrier, live, roundTripMs, openedMs, instructions, lists } = facts
  const row = (name: string, text: Words | undefined): void => {
    if (text !== undefined && String(text) !== '') printer.line(say`  ${paint.dim(name.padEnd(13))} ${text}`)
  }
  printer.line(say`${paint.bold(server?.title ?? server?.name ?? label)} ${paint.dim(server?.version ?? '')}`)
  row('target', label)
  row('name', server?.title === undefined ? undefined : server.name)
  row('about', server?.description === undefined ? undefined : brief(server.description, 300))
  row('page', server?.websiteUrl)
  const others = speaks.filter(each => each !== revision)
  row('revision', say`${paint.name(revision)}${others.length > 0 ? paint.dim(` also ${others.join(', ')}`) : ''}`)
  row('mode', era === 'request' ? 'stateless' : 'with a session')
  row('transport', carrier)
  row('opened in', durationText(openedMs))
  row('round trip', roundTripMs === undefined ? undefined : `${roundTripMs.toFixed(1)} ms`)
  row('capabilities', capabilityWords(facts.capabilities).join(', '))
  row('extensions', facts.extensions.join(', '))
  row(
    'live',
    live === undefined
      ? undefined
      : say`MCP Live ${live.version}, ${live.carrier === 'listen' ? 'by listening' : 'in the session'}`,
  )
  for (const { name, uses } of live?.featureSets ?? []) row('', say`${paint.name(name)} ${paint.dim(uses.join(', '))}`)
  const counts = Object.entries(lists).map(([kind, items]) => `${items.length} ${items.length === 1 ? kind.slice(0, -1) : kind}`)
  row('offers', counts.join(', '))
  row('manifest', manifestWords(facts))
  // Where the list cannot be had the manifest may still name them.
  const events = lists.events ?? facts.manifest?.events ?? []
  for (const [at, { name, description }] of events.entries())
    row(at === 0 ? 'events' : '', say`${paint.name(name)} ${paint.dim(brief(description, 120))}`)
  if (instructions !== undefined) {
    printer.line(say`  ${paint.dim('instructions')}`)
    printer.line(printer.wrapped(shortened(instructions), '    │ '))
  }
  printTools(facts, printer)
}

/** Its first lines, as they were broken. */
function shortened(text: string): string {
  const lines = text.slice(0, 1_200).trim().split('\n')
  return lines.length <= 12 && text.length <= 1_200 ? lines.join('\n') : `${lines.slice(0, 12).join('\n')}\n…`
}

/** What a manifest adds: revision, limits, scopes, extensions. */
function manifestWords({ manifest }: ServerFacts): string | undefined {
  if (manifest === undefined || manifest.partial) return undefined
  const { auth, rateLimits, supportedExtensions = [] } = manifest
  const limits = rateLimits?.requestsPerMinute === undefined ? [] : [`${rateLimits.requestsPerMinute} requests a minute`]
  const scopes = (auth?.scopes ?? []).map(({ name }) => name)
  return [
    brief(manifest.revision ?? '', 24),
    ...limits,
    ...(scopes.length > 0 ? [`scopes ${scopes.join(', ')}`] : []),
    supportedExtensions.join(', '),
  ]
    .filter(text => text !== '')
    .join(' · ')
}

/** What is worth knowing of tools before they are called; where nothing is said of any there is nothing to show. */
function printTools({ manifest }: ServerFacts, { line, paint }: Printer): void {
  const rows = (manifest?.tools ?? []).map(tool => {
    const { cost, latency, requiredScopes = [], riskLevel, compensation } = tool
    const facts = [
      ...(riskLevel === undefined ? [] : [riskLevel]),
      ...(requiredScopes.length > 0 ? [`scopes ${requiredScopes.join(' ')}`] : []),
      ...(cost?.category === undefined
        ? []
        : [cost.estimatedUnits === undefined ? cost.category : `${cost.estimatedUnits} ${cost.unitLabel ?? 'units'}`]),
      ...(latency === undefined ? [] : [latency]),
      ...(tool.idempotent === true ? ['idempotent'] : []),
      ...(tool.requiresConfirmation === true ? ['asks for confirmation'] : []),
      ...(tool.supportsStreaming === true ? ['streams'] : []),
      ...(compensation === undefined ? [] : [`undone by ${compensation.tool}`]),
    ]
    return { name: tool.name, facts }
  })
  if (rows.every(({ facts }) => facts.length === 0)) return
  line()
  line(paint.bold('Tools'))
  const wide = Math.min(40, Math.max(...rows.map(({ name }) => name.length)))
  for (const { name, facts } of rows)
    line(say`  ${paint.name(brief(name, 60).padEnd(wide))}  ${facts.length === 0 ? paint.dim('no details') : facts.join(' · ')}`)
}

/** `tools (listChanged)`, without what are extensions. */
function capabilityWords(capabilities: ServerFacts['capabilities']): readonly string[] {
  return Object.entries(capabilities)
    .filter(([name]) => name !== 'extensions' && name !== 'experimental')
    .map(([name, settings]) => {
      const on = isRecord(settings) ? Object.entries(settings).filter(([, value]) => value !== false) : []
      return on.length === 0 ? name : `${name} (${on.map(([key]) => key).join(', ')})`
    })
}
