/** What is asked of the servers: four works, in the wire form of each revision, and what a right answer looks like. */

export type Revision = '2025-11-25' | '2026-07-28'
export type WorkName = 'echo' | 'form20' | 'echo100k' | 'list200'

export interface Work {
  readonly name: WorkName
  readonly method: string
  readonly tool: string | undefined
  params(stamp: string): Record<string, unknown>
  /** What is wrong with this result, or undefined. */
  fault(result: Record<string, unknown>, stamp: string): string | undefined
}

/** Ids have a fixed width, so that a request is prepared once and only stamped anew; they never repeat in a run. */
export const FIRST_ID = 100_000_000
export const ID_DIGITS = 9
/** Marks a request's own text, so that an answer kept from another request is noticed. */
export const STAMP_MARK = 'n='

const LINE = 'the "quick" brown fox jumps over the lazy dog and then has a long rest, 0123456789\n'
const padded = (stamp: string, size: number): string => `${stamp} ${LINE.repeat(Math.ceil(size / LINE.length))}`.slice(0, size)

const FORM = {
  email: 'ada@example.com',
  phone: '+44 20 7946 0000',
  street: '12 St James Square',
  city: 'London',
  zip: 'SW1Y 4JH',
  country: 'GB',
  language: 'en',
  plan: 'team',
  currency: 'GBP',
  age: 36,
  quantity: 3,
  priority: 2,
  price: 19.99,
  score: 0.75,
  active: true,
  newsletter: false,
  tags: ['first', 'analytical', 'engine'],
  notes: 'Please deliver to the back door.',
  reference: 'ORD-2026-000117',
}

function call(name: WorkName, tool: string, args: (stamp: string) => object, reply: (stamp: string) => string): Work {
  return {
    name,
    method: 'tools/call',
    tool,
    params: stamp => ({ name: tool, arguments: args(stamp) }),
    fault(result, stamp) {
      const [block, ...more] = Array.isArray(result.content) ? (result.content as unknown[]) : []
      const text = (block as { text?: unknown } | undefined)?.text
      if (result.isError === true) return `an error result: ${String(text).slice(0, 200)}`
      if (more.length > 0) return 'more than one content block'
      return text === reply(stamp) ? undefined : 'a text that is not the one asked for'
    },
  }
}

function echoOf(name: WorkName, size: number): Work {
  return call(
    name,
    'echo',
    stamp => ({ text: padded(stamp, size) }),
    stamp => padded(stamp, size),
  )
}

const form20 = call(
  'form20',
  'form20',
  stamp => ({ name: `Ada Lovelace ${stamp}`, ...FORM }),
  stamp => `Ada Lovelace ${stamp} 20`,
)

const list200: Work = {
  name: 'list200',
  method: 'tools/list',
  tool: undefined,
  params: () => ({}),
  fault(result) {
    const tools = Array.isArray(result.tools) ? (result.tools as { inputSchema?: { properties?: object } }[]) : []
    if (tools.length !== 200) return `${tools.length} tools instead of 200 in one page`
    const complete = tools.every(tool => Object.keys(tool.inputSchema?.properties ?? {}).length === 4)
    return complete ? undefined : 'a tool without its input schema'
  },
}

export const works: readonly Work[] = [echoOf('echo', 100), form20, echoOf('echo100k', 100 * 1024), list200]

/** A form with one wrong property. Whoever validates must refuse it. */
export const badForm = { name: 'form20', arguments: { name: 'Ada Lovelace', ...FORM, age: 'thirty-six' } }

const CLIENT = { name: 'bench-load', version: '1.0.0' }

/** The request in the form of its revision. */
export function envelope(
  revision: Revision,
  id: number,
  method: string,
  params: object,
  capabilities: object = {},
): Record<string, unknown> {
  if (revision === '2025-11-25') return { jsonrpc: '2.0', id, method, params }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta } }
}

/** The opening request of a revision: the handshake, or the question that replaced it. */
export function opening(revision: Revision, id: number, handshake: string = revision): Record<string, unknown> {
  if (revision === '2026-07-28') return envelope(revision, id, 'server/discover', {})
  const params = { protocolVersion: handshake, capabilities: {}, clientInfo: CLIENT }
  return envelope(revision, id, 'initialize', params)
}

export const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
