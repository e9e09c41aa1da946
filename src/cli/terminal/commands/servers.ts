/** `/servers`: who is there, what they may do, and what they last complained about. */

import type { HostServer } from '../../../host/servers/server.ts'
import { fairLists } from '../../../host/servers/tool-list.ts'
import type { TerminalCommand, TerminalSession } from '../terminal.ts'
import { brief, type Paint, say, type TerminalText } from '../text.ts'
import { showWhy } from '../words.ts'

/** `/servers`: who is there. */
const servers: TerminalCommand = {
  name: 'servers',
  aliases: ['server'],
  takes: '[NAME | retry NAME]',
  about: 'lists the servers, with feature sets and tools',
  run: async (session, rest) => {
    const { host, screen } = session
    const [first = '', second = ''] = rest.split(/\s+/)
    if (first === 'retry' && host.server(second) !== undefined) {
      host.retry(second)
      screen.line(say` Reconnecting to ${screen.paint.name(second)}.`)
      return
    }
    const chosen = host.servers.filter(({ name }) => first === '' || name === first)
    if (chosen.length === 0) screen.line(first === '' ? ' There are no servers.' : say` There is no server ${brief(first)}.`)
    for (const server of chosen) await show(session, server, first !== '')
  },
}

/** One server; `whole` adds its tools, events and last errors. */
async function show({ screen, stderr }: TerminalSession, server: HostServer, whole: boolean): Promise<void> {
  const { paint } = screen
  const tools = await server.tools().catch(() => [])
  screen.line(say` ${serverLine(paint, server)} ${paint.dim(`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`)}`)
  if (server.status !== 'up') showWhy(screen, server.why, '  ')
  for (const [name, { enabled, description, uses }] of server.live?.featureSets ?? [])
    screen.line(
      say`   ${enabled ? paint.good('on ') : paint.warn('off')} ${name.padEnd(22)} ${paint.dim(brief(`${uses.join(', ')}: ${description}`, 90))}`,
    )
  for (const { tool, changes } of server.held())
    screen.line(say`   ${paint.warn('held')} ${tool.name} ${paint.dim(brief(changes.join('; '), 90))}`)
  if (!whole) return
  for (const { tool } of tools)
    screen.line(say`   ${paint.name(tool.name.padEnd(22))} ${paint.dim(brief(tool.description ?? '', 90))}`)
  for (const { name, description } of (await server.client?.eventTypes().catch(() => [])) ?? [])
    screen.line(say`   ${paint.dim('event')} ${paint.name(name.padEnd(16))} ${paint.dim(brief(description, 90))}`)
  for (const line of stderr.get(server.name) ?? []) screen.line(say`   ${paint.dim(`stderr: ${brief(line, 160)}`)}`)
}

/** A dot, the name, and what it speaks. */
export function serverLine(paint: Paint, { name, status, live, client }: HostServer): TerminalText {
  const dot = status === 'up' ? paint.good('●') : status === 'connecting' ? paint.warn('○') : paint.bad('✗')
  const speaks =
    live === undefined ? (client === undefined ? status : `MCP ${client.revision}`) : `MCP Live ${live.dialect.label}`
  return say`${dot} ${paint.name(name.padEnd(10))} ${paint.dim(speaks)}`
}

/** Resources that are shown or proposed. */
const listed = 200

/** `/resources`: what can be read and attached. */
const resources: TerminalCommand = {
  name: 'resources',
  aliases: ['resource'],
  takes: '[SERVER]',
  about: 'lists resources that you can read and attach',
  run: async (session, rest) => {
    const { screen } = session
    const found = await allResources(session, rest)
    if (found.length === 0) screen.line(' No server has resources.')
    const { paint } = screen
    for (const { server, uri, about } of found)
      screen.line(say` ${paint.name(server.padEnd(10))} ${uri} ${paint.dim(brief(about, 80))}`)
  },
}

/** `/attach`: puts a resource beside the next message. */
const attach: TerminalCommand = {
  name: 'attach',
  takes: 'URI',
  about: 'attaches a resource to your next message',
  run: async (session, rest) => {
    const { screen, attached } = session
    const { paint } = screen
    if (rest === '') {
      for (const { server, uri } of attached) screen.line(say` ${paint.name(server)} ${uri}`)
      if (attached.length === 0) screen.line(' Nothing is attached. Write /attach URI; /resources lists the URIs.')
      return
    }
    const [uri = '', named] = rest.split(/\s+/)
    const server = named ?? (await allResources(session, '')).find(each => each.uri === uri)?.server ?? byScheme(session, uri)
    if (server === undefined)
      screen.line(say` No server lists ${brief(uri)}. If a server has it anyway, write /attach URI SERVER.`)
    else {
      attached.push({ server, uri })
      screen.line(say` ${uri} of ${paint.name(server)} is attached to your next message.`)
    }
  },
}

/** A resource or a template of a server. */
interface FoundResource {
  readonly server: string
  readonly uri: string
  readonly about: string
  /** It is a pattern, which cannot be read as it is. */
  readonly template: boolean
}

/** Those that can be read as they are, then the patterns of others. */
export async function allResources({ host }: Pick<TerminalSession, 'host'>, only: string): Promise<readonly FoundResource[]> {
  const lists: FoundResource[][] = []
  for (const { name, client } of host.servers) {
    if (client?.capabilities['resources'] === undefined || (only !== '' && name !== only)) continue
    const found: FoundResource[] = []
    lists.push(found)
    try {
      for await (const { uri, name: title, description } of client.resources()) {
        if (found.length >= listed) break
        found.push({ server: name, uri, about: description ?? title, template: false })
      }
      for await (const { uriTemplate, name: title, description } of client.resourceTemplates()) {
        if (found.length >= listed) break
        found.push({ server: name, uri: uriTemplate, about: description ?? title, template: true })
      }
    } catch (error) {
      found.push({ server: name, uri: '(cannot be listed)', about: error instanceof Error ? error.message : '', template: true })
    }
  }
  return fairLists(lists, listed).flat()
}

/** The only server whose name is the scheme, for addresses that a template covers. */
function byScheme({ host }: TerminalSession, uri: string): string | undefined {
  const scheme = uri.slice(0, Math.max(0, uri.indexOf(':')))
  return host.servers.find(({ name }) => scheme !== '' && (name === scheme || name === `${scheme}s`))?.name
}

/** `/prompts`: what servers offer as commands. */
const prompts: TerminalCommand = {
  name: 'prompts',
  aliases: ['prompt'],
  about: 'lists the prompts of servers, used as /name arguments',
  run: async ({ host, screen }) => {
    const { paint } = screen
    const offered = await host.prompts()
    if (offered.length === 0) screen.line(' No server offers prompts.')
    for (const { command, server, prompt } of offered) {
      const takes = (prompt.arguments ?? []).map(({ name, required }) => (required === true ? name : `[${name}]`)).join(' ')
      screen.line(
        say` ${paint.name(`/${command} ${takes}`.padEnd(30))} ${paint.dim(brief(`${prompt.description ?? ''} (${server})`, 100))}`,
      )
    }
  },
}

/** Who is there, and what they offer. */
export const serverCommands = { servers, resources, attach, prompts }
