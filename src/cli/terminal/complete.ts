/** What Tab proposes: our own commands, prompts of servers with their arguments, and resources behind `/attach`. */
import { commands } from './commands/index.ts'
import { allResources } from './commands/resources.ts'
import type { Session } from './session.ts'

export async function completions(session: Session, line: string): Promise<readonly string[]> {
  if (!line.startsWith('/') || line.startsWith('//')) return []
  const [, name = '', rest] = /^\/(\S*)(?:\s+(.*))?$/.exec(line) ?? []
  if (rest === undefined) {
    const own = [...commands.keys()].filter(each => each.startsWith(name)).map(each => `/${each}`)
    return [...new Set([...own, ...(await session.conversation.complete(line))])]
  }
  if (name === 'attach') {
    const found = await allResources(session, '')
    return found.filter(({ uri, template }) => !template && uri.startsWith(rest)).map(({ uri }) => `/attach ${uri}`)
  }
  if (name === 'servers')
    return session.host.servers.filter(each => each.name.startsWith(rest)).map(each => `/servers ${each.name}`)
  return commands.has(name) ? [] : session.conversation.complete(line)
}
