/** `vivarium list`: what a server offers, a line each that reads like a signature. */
import type { EventType, Prompt, Resource, Tool } from '../../client/index.ts'
import { meantText } from '../../core/suggestion.ts'
import { signature, typeText } from '../arguments.ts'
import { type ConnectingOptions, connectingOptions, targetAbout, withClient } from '../connecting.ts'
import { CliError } from '../io.ts'
import { type ListKind, type Lists, listKinds, listsOf } from '../lists.ts'
import { rememberOffers } from '../offers.ts'
import { asideOf, type Printer, printerOf } from '../print.ts'
import type { Verb } from '../program.ts'
import type { ServerFacts } from '../server-facts.ts'
import { splitTarget } from '../target.ts'
import { brief, joinedText, say, type TerminalText, type Words } from '../terminal/text.ts'

/** `vivarium list`. */
export const list: Verb = (command, io) => {
  connectingOptions(
    command
      .argument('[target]', targetAbout)
      .argument('[kind]', 'tools, resources, templates, prompts, events or all (default: all)'),
  )
    .examples([
      ['vivarium list https://example.com/mcp', 'List everything'],
      ['vivarium list ./server.ts tools', 'List only the tools'],
      ['vivarium list -- npx -y @modelcontextprotocol/server-everything', 'List what a program offers'],
      ['vivarium list cursor:github --format json', 'List a server of the Cursor config as JSON'],
    ])
    .action<ConnectingOptions>(call => {
      // Before anything is started for it.
      const wanted = kindOf(splitTarget(call).rest[0])
      return withClient(call, io, async ({ client, missing }) => {
        const { lists, failed } = await asideOf(io).during('listing', listsOf(client, missing, wanted))
        rememberOffers(splitTarget(call).target, lists, io.env)
        const printer = printerOf(io)
        if (call.options.format === 'json') printer.json({ ...lists, ...(failed.length > 0 && { failed }) })
        else printLists(lists, printer, wanted.length > 1)
        return tellFailed(failed, printer)
      })
    })
}

/** The lists that a word names; singular words do as well. */
function kindOf(word = 'all'): readonly ListKind[] {
  if (word === 'all') return listKinds
  const kind = listKinds.find(each => each === word || each === `${word}s`)
  if (kind === undefined) {
    const fix = meantText(word, listKinds) ?? `Write one of ${listKinds.join(', ')}, all`
    throw new CliError(`${JSON.stringify(brief(word, 40))} is not a kind of list`, fix)
  }
  return [kind]
}

/** Beside what could be had: what could not, and why. A list that the server does not have is no failure of the command. */
export function tellFailed(failed: readonly ServerFacts['failed'][number][], { aside }: Printer): 0 | 1 {
  for (const { kind, message } of failed) aside.line(say`${aside.paint.warn('!')} ${kind}: ${brief(message, 300)}`)
  return failed.some(({ unknown }) => !unknown) ? 1 : 0
}

/** The lists for people, each below its title where there are several. */
function printLists(lists: Lists, printer: Printer, titled: boolean): void {
  const { tools, resources, templates, prompts, events } = lists
  const { paint } = printer
  const about = (text: string | undefined): Words =>
    text === undefined || text.trim() === '' ? '' : say`\n${paint.dim(printer.wrapped(brief(text, 400), '    '))}`
  const section = (title: string, lines: readonly TerminalText[] | undefined): void => {
    if (lines === undefined || (lines.length === 0 && titled)) return
    if (titled) printer.line(paint.bold(`${title} (${lines.length})`))
    for (const line of lines) printer.line(line)
    if (titled) printer.line()
  }
  const row = (line: TerminalText, text: string | undefined): TerminalText => say`  ${line}${about(text)}`
  section(
    'Tools',
    tools?.map(tool => row(toolLine(tool, printer), tool.description)),
  )
  section(
    'Resources',
    resources?.map(each => row(resourceLine(each.uri, each, printer), each.description)),
  )
  section(
    'Templates',
    templates?.map(each => row(resourceLine(each.uriTemplate, each, printer), each.description)),
  )
  section(
    'Prompts',
    prompts?.map(each => row(promptLine(each, printer), each.description)),
  )
  section(
    'Events',
    events?.map(each => row(eventLine(each, printer), each.description)),
  )
  const none = Object.values(lists).every(each => each.length === 0)
  if (none) printer.line(paint.dim(titled ? 'The server offers nothing.' : 'None.'))
}

/** The name in its colour, the rest plain, and what is worth knowing before a call. */
function toolLine(tool: Tool, { paint }: Printer): TerminalText {
  const whole = signature(tool.name, tool.inputSchema ?? {}, tool.outputSchema)
  const { readOnlyHint, destructiveHint } = tool.annotations ?? {}
  const marks = [
    ...(readOnlyHint === true ? [paint.good('read-only')] : []),
    ...(destructiveHint === true && readOnlyHint !== true ? [paint.warn('destructive')] : []),
    ...(tool.execution?.taskSupport === 'required' ? ['as a task'] : []),
  ]
  return say`${paint.name(tool.name)}${whole.slice(tool.name.length)}${marks.length === 0 ? '' : say`  ${paint.dim('·')} ${joinedText(marks, paint.dim(', '))}`}`
}

/** The URI or template, its title and its type. */
function resourceLine(uri: string, { name, title, mimeType }: Omit<Resource, 'uri'>, { paint }: Printer): TerminalText {
  const beside = [title ?? name, mimeType].filter(text => text !== undefined && text !== uri)
  return say`${paint.name(uri)}${beside.length === 0 ? '' : say`  ${paint.dim(brief(beside.join(', '), 120))}`}`
}

/** The name with its arguments; optional ones have a question mark. */
function promptLine({ name, arguments: parameters = [] }: Prompt, { paint }: Printer): TerminalText {
  return say`${paint.name(name)}${`(${parameters.map(({ name, required }) => (required ? name : `${name}?`)).join(', ')})`}`
}

/** With what it tells, and what one must be allowed to hear of it. */
function eventLine({ name, payload, scopes = [] }: EventType, { paint }: Printer): TerminalText {
  const tells = payload === undefined ? '' : ` ${typeText(payload, payload)}`
  const needs = scopes.length === 0 ? '' : say`  ${paint.dim('·')} ${`needs ${scopes.join(' ')}`}`
  return say`${paint.name(name)}${tells}${needs}`
}
