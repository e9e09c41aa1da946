/** `/servers`: who is there, what they may do, and what they last complained about. */
import type { HostServer } from '../../../host/servers/server.ts'
import { brief, type Paint } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { say, type TerminalText } from '../text.ts'
import { whyLines } from '../words.ts'

export const servers: Command = {
  name: 'servers',
  aliases: ['server'],
  takes: '[NAME | retry NAME]',
  about: 'who is connected, with feature sets and tools',
  run: async (session, rest) => {
    const { host, screen } = session
    const [first = '', second = ''] = rest.split(/\s+/)
    if (first === 'retry' && host.server(second) !== undefined) {
      host.retry(second)
      screen.line(say` ${screen.paint.name(second)} is tried again.`)
      return undefined
    }
    const chosen = host.servers.filter(({ name }) => first === '' || name === first)
    if (chosen.length === 0)
      screen.line(first === '' ? ' There are no servers.' : say` There is no server ${screen.paint.plain(brief(first))}.`)
    for (const server of chosen) await show(session, server, first !== '')
    return undefined
  },
}

async function show({ screen, stderr }: Session, server: HostServer, whole: boolean): Promise<void> {
  const { paint } = screen
  const tools = await server.tools().catch(() => [])
  screen.line(say` ${serverLine(paint, server)} ${paint.dim(`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`)}`)
  if (server.why !== undefined && server.status !== 'up')
    for (const line of whyLines(paint, server.why)) screen.line(say`  ${line}`)
  for (const [name, { enabled, description, uses }] of server.live?.featureSets ?? [])
    screen.line(
      say`   ${enabled ? paint.good('on ') : paint.warn('off')} ${paint.plain(name.padEnd(22))} ${paint.dim(brief(`${uses.join(', ')}: ${description}`, 90))}`,
    )
  for (const { tool, changes } of server.held())
    screen.line(say`   ${paint.warn('held')} ${paint.plain(tool.name)} ${paint.dim(brief(changes.join('; '), 90))}`)
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
