/** `vivarium list`: what a server offers, a line each that reads like a signature. */
import type { Client, Prompt, Resource, ResourceTemplate, Tool } from '../../client/index.ts'
import { rememberOffers } from '../completing/offers-book.ts'
import { type ConnectingOptions, connectingOptions, withClient } from '../connecting.ts'
import { CliError } from '../exit.ts'
import { gather } from '../gather.ts'
import { nearest } from '../nearest.ts'
import { type Printer, printerOf, widthOf, wrapped } from '../print.ts'
import type { Verb } from '../program.ts'
import { signature } from '../signature.ts'
import { splitTarget } from '../target.ts'
import { brief } from '../terminal/paint.ts'

const kinds = ['tools', 'resources', 'templates', 'prompts'] as const
type Kind = (typeof kinds)[number]

/** What was found, by kind. A kind that the server does not offer is absent. */
export interface Lists {
  readonly tools?: readonly Tool[]
  readonly resources?: readonly Resource[]
  readonly templates?: readonly ResourceTemplate[]
  readonly prompts?: readonly Prompt[]
}

export const list: Verb = {
  name: 'list',
  summary: 'What a server offers: tools, resources, templates, prompts',
  declare(command, io) {
    connectingOptions(
      command.argument('[target]', 'the server').argument('[kind]', 'tools, resources, templates, prompts or all'),
    )
      .examples([
        ['vivarium list https://example.com/mcp', 'everything it offers'],
        ['vivarium list ./server.ts tools', 'only its tools'],
        ['vivarium list -- npx -y @modelcontextprotocol/server-everything', 'a program'],
        ['vivarium list cursor:github --format json', 'a server that Cursor knows, for a program'],
      ])
      .action<ConnectingOptions>(call => {
        // Before anything is started for it.
        const wanted = kindOf(splitTarget(call).rest[0])
        return withClient(call, io, async ({ client }) => {
          const lists = await listsOf(client, wanted)
          rememberOffers(splitTarget(call).target, lists, io.env)
          const printer = printerOf(io)
          if (call.options.format === 'json') printer.json(lists)
          else printLists(lists, printer, widthOf(io), wanted.length > 1)
          return 0
        })
      })
  },
}

function kindOf(word = 'all'): readonly Kind[] {
  if (word === 'all') return kinds
  const kind = kinds.find(each => each === word || each === `${word}s`)
  if (kind === undefined) {
    const near = nearest(word, kinds)
    const fix = near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `There are ${kinds.join(', ')} and all`
    throw new CliError(1, `There is no list of ${JSON.stringify(brief(word, 40))}`, fix)
  }
  return [kind]
}

/** Which capability stands for which list. */
const capability: Readonly<Record<Kind, string>> = {
  tools: 'tools',
  resources: 'resources',
  templates: 'resources',
  prompts: 'prompts',
}

/** Only what the server declares is asked for; but one kind alone is asked for in any case, and its refusal told. */
export async function listsOf(client: Client, wanted: readonly Kind[] = kinds): Promise<Lists> {
  const all = async <T>(kind: Kind, items: AsyncIterable<T>): Promise<readonly T[] | undefined> =>
    wanted.includes(kind) && (wanted.length === 1 || client.capabilities[capability[kind]] !== undefined)
      ? gather(items)
      : undefined
  const tools = await all('tools', client.tools())
  const resources = await all('resources', client.resources())
  const templates = await all('templates', client.resourceTemplates())
  const prompts = await all('prompts', client.prompts())
  return {
    ...(tools && { tools }),
    ...(resources && { resources }),
    ...(templates && { templates }),
    ...(prompts && { prompts }),
  }
}

function printLists({ tools, resources, templates, prompts }: Lists, printer: Printer, width: number, titled: boolean): void {
  const { paint } = printer
  const about = (text: string | undefined): string =>
    text === undefined || text.trim() === '' ? '' : `\n${paint.dim(wrapped(brief(text, 400), width, '    '))}`
  const section = (title: string, lines: readonly string[] | undefined): void => {
    if (lines === undefined || (lines.length === 0 && titled)) return
    if (titled) printer.line(paint.bold(`${title} (${lines.length})`))
    for (const line of lines) printer.line(line)
    if (titled) printer.line()
  }
  section(
    'Tools',
    tools?.map(tool => `  ${toolLine(tool, printer)}${about(tool.description)}`),
  )
  section(
    'Resources',
    resources?.map(each => `  ${resourceLine(each.uri, each, printer)}${about(each.description)}`),
  )
  section(
    'Templates',
    templates?.map(each => `  ${resourceLine(each.uriTemplate, each, printer)}${about(each.description)}`),
  )
  section(
    'Prompts',
    prompts?.map(prompt => `  ${promptLine(prompt, printer)}${about(prompt.description)}`),
  )
  const none = [tools, resources, templates, prompts].every(each => each === undefined || each.length === 0)
  if (none) printer.line(paint.dim('Nothing.'))
}

/** The name in its colour, the rest plain, and what is worth knowing before a call. */
export function toolLine(tool: Tool, { paint }: Printer): string {
  const whole = signature(tool.name, tool.inputSchema ?? {}, tool.outputSchema)
  const { readOnlyHint, destructiveHint } = tool.annotations ?? {}
  const marks = [
    ...(readOnlyHint === true ? [paint.good('reads only')] : []),
    ...(destructiveHint === true && readOnlyHint !== true ? [paint.warn('may destroy')] : []),
    ...(tool.execution?.taskSupport === 'required' ? ['as a task'] : []),
  ]
  return `${paint.name(tool.name)}${paint.plain(whole.slice(tool.name.length))}${marks.length === 0 ? '' : `  ${paint.dim('·')} ${marks.join(paint.dim(', '))}`}`
}

function resourceLine(uri: string, { name, title, mimeType }: Omit<Resource, 'uri'>, { paint }: Printer): string {
  const beside = [title ?? name, mimeType].filter(text => text !== undefined && text !== uri)
  return `${paint.name(uri)}${beside.length === 0 ? '' : `  ${paint.dim(brief(beside.join(', '), 120))}`}`
}

function promptLine({ name, arguments: parameters = [] }: Prompt, { paint }: Printer): string {
  return `${paint.name(name)}${paint.plain(`(${parameters.map(({ name, required }) => (required ? name : `${name}?`)).join(', ')})`)}`
}
