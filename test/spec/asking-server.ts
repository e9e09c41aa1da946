/** A server whose handlers ask, and a client that plays the rounds by hand. */
import { z } from 'zod'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { everyRevision, type Frame, resultOf, type Wire } from './wire.ts'

export const secret = 'a secret of more than thirty-two characters'
export const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }

export interface Asked {
  readonly server: Server
  /** What handlers did, in order. */
  readonly trail: string[]
  readonly traces: string[]
}

export function askingServer(options: Partial<ServerOptions> = {}): Asked {
  const trail: string[] = []
  const traces: string[] = []
  const server = createServer({
    name: 'asking',
    version: '1.0.0',
    revisions: everyRevision,
    secret,
    onTrace: event => traces.push(event),
    ...options,
  })
  server.tool('book', { input: z.object({ room: z.string().optional() }) }, async ({ room }, ctx) => {
    trail.push('enter')
    try {
      const first = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) })
      if (first.action !== 'accept') return `not booked: ${first.action}`
      const sure = await ctx.confirm(`Book ${room ?? 'a room'} for ${first.content.name}?`)
      return sure ? `booked for ${first.content.name}` : 'not booked'
    } finally {
      trail.push('finally')
    }
  })
  server.prompt('plan', { arguments: { goal: {} } }, async ({ goal }, ctx) =>
    (await ctx.confirm(`Plan ${goal}?`)) ? 'planned' : 'left',
  )
  server.resource('memo://{id}', { name: 'memo' }, async ({ id }, ctx) =>
    (await ctx.confirm(`Read ${id}?`)) ? 'read' : 'closed',
  )
  return { server, trail, traces }
}

export interface Round {
  readonly requests: Readonly<Record<string, { readonly method: string; readonly params: Frame }>>
  readonly state: string
}

/** The questions of a result that asks. */
export function round(frame: Frame): Round {
  const { resultType, inputRequests, requestState } = resultOf(frame)
  if (resultType !== 'input_required') throw new Error(`No question in ${JSON.stringify(frame)}`)
  return { requests: (inputRequests ?? {}) as Round['requests'], state: requestState as string }
}

export type Answers = (key: string, method: string, params: Frame) => unknown

/** Repeats a request under new ids, answering all that it asks, until it comes to an end. Gives the last answer and the rounds. */
export async function drive(
  wire: Wire,
  method: string,
  params: Frame,
  answers: Answers,
): Promise<{ last: Frame; rounds: Round[] }> {
  const rounds: Round[] = []
  let last = await wire.ask(method, params)
  while ((last['result'] as Frame | undefined)?.['resultType'] === 'input_required') {
    const asked = round(last)
    rounds.push(asked)
    const inputResponses = Object.fromEntries(
      Object.entries(asked.requests).map(([key, request]) => [key, answers(key, request.method, request.params)]),
    )
    last = await wire.ask(method, { ...params, inputResponses, requestState: asked.state })
  }
  return { last, rounds }
}

export const accept: Answers = (_key, _method, params) => {
  const { properties } = (params['requestedSchema'] ?? {}) as { properties?: Frame }
  const { name, confirm } = properties ?? {}
  return {
    action: 'accept',
    content: { ...(name !== undefined && { name: 'Ada' }), ...(confirm !== undefined && { confirm: true }) },
  }
}
