/**
 * Changes as the dialect tells them: what came and went since this client was last told. A client that never listed has
 * nothing to compare with and hears nothing.
 */
import type { Conversation, ConversationSlot } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Layer } from '../../../engine/stages.ts'
import { isRecord, isThenable } from '../../../jsonrpc/message.ts'
import { listResources, type Resource, resourcesChangedDialect } from '../resources/messages.ts'
import { listTools, type Tool, toolsChangedDialect } from '../tools/messages.ts'

/** What is offered now. */
interface OfferedLists {
  readonly tools: () => readonly Tool[]
  readonly resources: () => readonly Resource[]
}

type NamedResource = Pick<Resource, 'uri' | 'name'>

/** What one conversation was last told. */
interface SentLists {
  tools: ReadonlyMap<string, Tool> | undefined
  resources: ReadonlyMap<string, Resource> | undefined
  /** All that it has listed, also what only a template knew of. */
  listed: ReadonlyMap<string, NamedResource>
}

const memory: ConversationSlot<SentLists> = { make: () => ({ tools: undefined, resources: undefined, listed: new Map() }) }

/** The notifications of changes as the dialect s3 has them: with the items that came and went. */
export function dialectChanges(offered: OfferedLists) {
  const layer: Layer = {
    stage: 'execute',
    methods: [listTools.name, listResources.name],
    in: toolsChangedDialect.in,
    run: ({ engine, route, conversation }, next) => {
      const isTools = route.method.name === listTools.name
      const current = isTools ? undefined : resourcesFor(engine, conversation, offered)
      const tools = isTools ? toolsFor(engine, conversation, offered) : undefined
      const result = next()
      const told = conversation.recall(memory)
      if (tools !== undefined) told.tools = tools
      if (current !== undefined) told.resources = current
      const remember = (sent: unknown): unknown => {
        if (!isTools) told.listed = byUri(entriesOf(sent))
        return sent
      }
      return isThenable(result) ? result.then(remember) : remember(result)
    },
  }
  return {
    /** Remembers what is listed. */
    layer,
    tools: (engine: Engine, conversation: Conversation): void => tellTools(engine, conversation, offered),
    resources: (engine: Engine, conversation: Conversation): void => tellResources(engine, conversation, offered),
    updated: (engine: Engine, conversation: Conversation, uri: string): void => {
      const listed = conversation.remembered(memory)?.listed
      const entry = listed?.get(uri)
      if (listed !== undefined && entry !== undefined) {
        engine.notify(conversation, resourcesChangedDialect, { updated: [idOf(entry, listed.values())] })
      }
    },
  }
}

function tellTools(engine: Engine, conversation: Conversation, offered: OfferedLists): void {
  const told = conversation.remembered(memory)
  const before = told?.tools
  if (told === undefined || before === undefined) return
  const after = toolsFor(engine, conversation, offered)
  // A tool that is another one under its old name must be looked at again, like a new one.
  const added = [...after.values()].filter(tool => before.get(tool.name) !== tool)
  const removed = [...before.keys()].filter(name => !after.has(name))
  told.tools = after
  if (added.length + removed.length === 0) return
  engine.notify(conversation, toolsChangedDialect, {
    added: added.map(({ name, description }) => ({ name, description: description ?? '' })),
    removed,
  })
}

function tellResources(engine: Engine, conversation: Conversation, offered: OfferedLists): void {
  const told = conversation.remembered(memory)
  const before = told?.resources
  if (told === undefined || before === undefined) return
  const after = resourcesFor(engine, conversation, offered)
  const changed = [...after.values()].filter(resource => before.get(resource.uri) !== resource)
  const removed = [...before.values()].filter(({ uri }) => !after.has(uri))
  told.resources = after
  told.listed = new Map([...told.listed].filter(([uri]) => !before.has(uri)).concat([...after]))
  if (changed.length + removed.length === 0) return
  const known = [...told.listed.values(), ...removed]
  engine.notify(conversation, resourcesChangedDialect, { updated: [...changed, ...removed].map(entry => idOf(entry, known)) })
}

/** The dialect knows a resource by its name, as long as that is nobody else's. */
function idOf({ uri, name }: NamedResource, known: Iterable<NamedResource>): string {
  for (const other of known) if (other.name === name && other.uri !== uri) return uri
  return name
}

/** What of all tools this client hears of. */
function toolsFor({ shows }: Engine, { caller }: Conversation, { tools }: OfferedLists): ReadonlyMap<string, Tool> {
  return byName(shows === undefined ? tools() : tools().filter(({ name }) => shows(caller, 'tool', name)))
}

function resourcesFor({ shows }: Engine, { caller }: Conversation, { resources }: OfferedLists): ReadonlyMap<string, Resource> {
  return byUri(shows === undefined ? resources() : resources().filter(({ uri }) => shows(caller, 'resource', uri)))
}

function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(tools.map(tool => [tool.name, tool]))
}

function byUri<R extends NamedResource>(resources: readonly R[]): ReadonlyMap<string, R> {
  return new Map(resources.map(resource => [resource.uri, resource]))
}

function entriesOf(sent: unknown): readonly NamedResource[] {
  const resources = isRecord(sent) ? sent['resources'] : undefined
  return Array.isArray(resources) ? resources : []
}
