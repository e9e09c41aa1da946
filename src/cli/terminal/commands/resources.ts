/** `/resources`: what servers have to read; `/attach`: puts one of it beside the next message. */
import { fairLists } from '../../../host/servers/tool-list.ts'
import { brief } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { say } from '../text.ts'

const listed = 200

export const resources: Command = {
  name: 'resources',
  aliases: ['resource'],
  takes: '[SERVER]',
  about: 'what can be read and attached',
  run: async (session, rest) => {
    const { screen } = session
    const found = await allResources(session, rest)
    if (found.length === 0) screen.line(' No server has resources now.')
    const { paint } = screen
    for (const { server, uri, about } of found)
      screen.line(say` ${paint.name(server.padEnd(10))} ${paint.plain(uri)} ${paint.dim(brief(about, 80))}`)
    return undefined
  },
}

export const attach: Command = {
  name: 'attach',
  takes: 'URI',
  about: 'puts a resource beside your next message',
  run: async (session, rest) => {
    const { screen, attached } = session
    const { paint } = screen
    if (rest === '') {
      for (const { server, uri } of attached) screen.line(say` ${paint.name(server)} ${paint.plain(uri)}`)
      if (attached.length === 0) screen.line(' Nothing is attached. Write /attach URI; /resources lists them.')
      return undefined
    }
    const [uri = '', named] = rest.split(/\s+/)
    const server = named ?? (await allResources(session, '')).find(each => each.uri === uri)?.server ?? byScheme(session, uri)
    if (server === undefined)
      screen.line(say` No server lists ${paint.plain(brief(uri))}. Write /attach URI SERVER if it has it all the same.`)
    else {
      attached.push({ server, uri })
      screen.line(say` ${paint.plain(uri)} of ${paint.name(server)} goes beside your next message.`)
    }
    return undefined
  },
}

interface Found {
  readonly server: string
  readonly uri: string
  readonly about: string
  readonly template: boolean
}

/** Those that can be read as they are, then the patterns of others. */
export async function allResources({ host }: Pick<Session, 'host'>, only: string): Promise<readonly Found[]> {
  const lists: Found[][] = []
  for (const { name, client } of host.servers) {
    if (client?.capabilities['resources'] === undefined || (only !== '' && name !== only)) continue
    const found: Found[] = []
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
function byScheme({ host }: Session, uri: string): string | undefined {
  const scheme = uri.slice(0, Math.max(0, uri.indexOf(':')))
  return host.servers.find(({ name }) => scheme !== '' && (name === scheme || name === `${scheme}s`))?.name
}
