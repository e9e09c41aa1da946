/** What a server offers at a revision: tools, resources, templates and prompts, as rows of a list and whole. */
import type { Client, Prompt, Resource, ResourceTemplate, Tool } from '../../client/index.ts'
import type { Clock } from '../../core/clock.ts'
import { templateVariables } from '../../features/mcp/resources/template.ts'
import type { RevisionId } from '../../revisions/index.ts'
import type { Offer, OfferDetail, OfferItemQuery, OfferQuery } from '../contract/calls.ts'
import { ConsoleFailure } from '../failure.ts'
import type { PlaygroundServer } from './server.ts'

/** The lists of a server, as their routes are called. */
export type OfferList = 'tools' | 'resources' | 'prompts'

interface Found {
  readonly offer: Offer
  readonly definition: Tool | Resource | ResourceTemplate | Prompt
}

interface Listed {
  readonly at: number
  readonly revision: RevisionId
  readonly found: readonly Found[]
}

/** How long a list counts that no notification has called old. */
const freshMs = 30_000
const descriptionLength = 500
const listOf = { tool: 'tools', resource: 'resources', template: 'resources', prompt: 'prompts' } as const

/** Lists what one server offers, and remembers it for a while. */
export class Offers {
  readonly #server: PlaygroundServer
  readonly #clock: Clock
  readonly #lists = new Map<string, Listed>()

  constructor(server: PlaygroundServer, clock: Clock) {
    this.#server = server
    this.#clock = clock
  }

  /** The server said that a list has changed, or nobody knows which one. */
  forget(list?: OfferList): void {
    for (const key of this.#lists.keys()) if (list === undefined || key.startsWith(`${list} `)) this.#lists.delete(key)
  }

  /** Reads all lists, to know how many there are. */
  async count(): Promise<void> {
    const lists: readonly OfferList[] = ['tools', 'resources', 'prompts']
    await Promise.all(lists.map(list => this.#read(list, undefined).catch(() => undefined)))
  }

  /** What was listed last at the preferred revision. */
  known(): readonly { readonly kind: Offer['kind']; readonly name: string; readonly own: string }[] {
    const { preferred = '' } = this.#server
    const lists = ['tools', 'resources', 'prompts'].flatMap(list => this.#lists.get(`${list} ${preferred}`)?.found ?? [])
    return lists.map(({ offer: { kind, name } }) => ({ kind, name, own: name }))
  }

  /** Those that match, in the order of the server. */
  async list(list: OfferList, { revision, text }: OfferQuery): Promise<readonly Offer[]> {
    const { found } = await this.#read(list, this.#server.revisionOf(revision))
    const all = found.map(({ offer }) => offer)
    if (text === undefined) return all
    const wanted = text.toLowerCase()
    return all.filter(({ name, title = '', description = '' }) =>
      `${name} ${title} ${description}`.toLowerCase().includes(wanted),
    )
  }

  /** One of them, whole. */
  async detail({ kind, item, revision }: OfferItemQuery): Promise<OfferDetail> {
    const listed = await this.#read(listOf[kind], this.#server.revisionOf(revision))
    const found = listed.found.find(({ offer }) => offer.kind === kind && offer.name === item)
    if (found === undefined)
      throw new ConsoleFailure('NOT_FOUND', `The server has no ${kind} of this name.`, 'Read the list again.')
    const { offer, definition } = found
    const { input, output, completes } = schemasOf(offer, definition)
    return {
      ...{ offer, revision: listed.revision, definition: { ...definition }, completes },
      ...(input !== undefined && { input }),
      ...(output !== undefined && { output }),
    }
  }

  async #read(list: OfferList, wanted: RevisionId | undefined): Promise<Listed> {
    const key = `${list} ${wanted ?? this.#server.preferred ?? ''}`
    const known = this.#lists.get(key)
    if (known !== undefined && this.#clock.now() - known.at < freshMs) return known
    const listed = await this.#server.use(wanted, async ({ client }): Promise<Listed> => {
      const found = await readers[list](client)
      return { at: this.#clock.now(), revision: client.revision, found }
    })
    this.#lists.set(`${list} ${listed.revision}`, listed)
    if (listed.revision === this.#server.preferred) this.#server.count({ [list]: listed.found.length })
    return listed
  }
}

const readers: Readonly<Record<OfferList, (client: Client) => Promise<readonly Found[]>>> = {
  tools: async client => declared(client, 'tools', async () => (await gather(client.tools())).map(toolOffer)),
  prompts: async client => declared(client, 'prompts', async () => (await gather(client.prompts())).map(promptOffer)),
  resources: async client =>
    declared(client, 'resources', async () => {
      const [resources, templates] = await Promise.all([gather(client.resources()), gather(client.resourceTemplates())])
      return [...resources.map(resourceOffer), ...templates.map(templateOffer)]
    }),
}

/** A server is not asked for what it does not declare. */
async function declared(
  { capabilities }: Client,
  name: OfferList,
  read: () => Promise<readonly Found[]>,
): Promise<readonly Found[]> {
  return capabilities[name] === undefined ? [] : read()
}

/** All that an iteration gives; lists of servers are bounded by the client. */
async function gather<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

function toolOffer(definition: Tool): Found {
  const { name, annotations = {}, execution } = definition
  const { readOnlyHint, destructiveHint, idempotentHint } = annotations
  const offer: Offer = {
    ...{ kind: 'tool', name },
    ...described({ title: definition.title ?? annotations.title, description: definition.description }),
    ...(readOnlyHint !== undefined && { readOnly: readOnlyHint }),
    ...(destructiveHint !== undefined && { destructive: destructiveHint }),
    ...(idempotentHint !== undefined && { idempotent: idempotentHint }),
    ...(execution?.taskSupport !== undefined && { task: execution.taskSupport }),
  }
  return { offer, definition }
}

function promptOffer(definition: Prompt): Found {
  return { offer: { kind: 'prompt', name: definition.name, ...described(definition) }, definition }
}

function resourceOffer(definition: Resource): Found {
  const { uri, name, title = name, description, mimeType, size } = definition
  const offer: Offer = {
    ...{ kind: 'resource', name: uri },
    ...described({ title, description }),
    ...(mimeType !== undefined && { mimeType }),
    ...(size !== undefined && { size }),
  }
  return { offer, definition }
}

function templateOffer(definition: ResourceTemplate): Found {
  const { uriTemplate, name, title = name, description, mimeType } = definition
  const more = described({ title, description })
  return { offer: { kind: 'template', name: uriTemplate, ...more, ...(mimeType !== undefined && { mimeType }) }, definition }
}

interface Texts {
  readonly title?: string | undefined
  readonly description?: string | undefined
}

function described({ title, description }: Texts): Pick<Offer, 'title' | 'description'> {
  return {
    ...(title !== undefined && { title: title.slice(0, descriptionLength) }),
    ...(description !== undefined && { description: description.slice(0, descriptionLength) }),
  }
}

type Schemas = Pick<OfferDetail, 'input' | 'output' | 'completes'>

/** The schema of a form for it. Arguments of prompts and variables of templates are texts. */
function schemasOf({ kind }: Offer, definition: Found['definition']): Schemas {
  if (kind === 'tool') {
    const { inputSchema, outputSchema } = definition as Tool
    return { input: inputSchema, ...(outputSchema !== undefined && { output: outputSchema }), completes: [] }
  }
  if (kind === 'prompt') {
    const given = (definition as Prompt).arguments ?? []
    const properties = Object.fromEntries(
      given.map(({ name, title, description }) => [name, { type: 'string', ...described({ title, description }) }]),
    )
    const required = given.filter(each => each.required === true).map(({ name }) => name)
    return { input: { type: 'object', properties, required }, completes: given.map(({ name }) => name) }
  }
  if (kind === 'resource') return { completes: [] }
  const variables = templateVariables((definition as ResourceTemplate).uriTemplate)
  const properties = Object.fromEntries(variables.map(name => [name, { type: 'string' }]))
  return { input: { type: 'object', properties, required: variables }, completes: variables }
}
