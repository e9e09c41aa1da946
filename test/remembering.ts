/** For the tests of this folder: a server that remembers, bare peers on pipes, and exchanges over HTTP without the socket. */
import { z } from 'zod'
import { stateExtension } from '../src/features/reliability/session-state/messages.ts'
import type { Caller, Lane } from '../src/jsonrpc/connection.ts'
import type { RevisionId } from '../src/revisions/index.ts'
import { type Context, createServer, type Server, type ServerOptions } from '../src/server/index.ts'
import { type Frame, type PeerOptions, resultOf, speak, type Wire } from './spec/wire.ts'

export const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
export const secret = 'an only secret of at least 32 characters'
export const declares = { extensions: { [stateExtension]: {}, 'dev.vivarium/problem': {} } }

interface Notes {
  readonly notes?: readonly string[]
}

async function note(text: string, ctx: Context): Promise<string> {
  const { notes = [] } = (await ctx.state.get<Notes>()) ?? {}
  await ctx.state.set({ notes: [...notes, text] })
  return [...notes, text].join(' ')
}

const input = z.object({ text: z.string() })

export function remembering(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent', secret, ...options })
  server.tool('note', { input }, ({ text }, ctx) => note(text, ctx))
  server.tool('branch', { input, state: 'branch' }, ({ text }, ctx) => note(text, ctx))
  server.tool('strict', { input, state: 'conflict' }, ({ text }, ctx) => note(text, ctx))
  server.tool('add', { input }, async ({ text }, ctx) =>
    JSON.stringify(await ctx.state.patch([{ op: 'add', path: `/${text}`, value: 1 }])),
  )
  server.tool('read', {}, async (_, ctx) => JSON.stringify((await ctx.state.get()) ?? null))
  server.tool('plain', {}, () => 'plain')
  server.tool('durable', {}, (_, ctx) => String(ctx.state.durable))
  server.tool('large', {}, (_, ctx) => {
    // Not awaited: it is written all the same.
    void ctx.state.set({ notes: ['x'.repeat(100_000)] })
    return 'kept'
  })
  server.tool('forget', {}, async (_, ctx) => void (await ctx.state.set(undefined)))
  server.tool('fail', { input }, async ({ text }, ctx) => {
    await note(text, ctx)
    throw new Error('After all not')
  })
  server.tool('sure', { input }, async ({ text }, ctx) => {
    await note(text, ctx)
    return (await ctx.confirm('Sure?')) ? JSON.stringify(await ctx.state.get()) : 'no'
  })
  return server
}

export interface Peer extends Wire {
  /** Calls a tool with a token, or without; gives its text, what it says of state, and the code of its problem. */
  call(tool: string, text?: string, token?: unknown): Promise<Called>
}

export interface Called {
  readonly text: string
  readonly state: { readonly session_state?: string; readonly state_changed?: boolean; readonly expires_at?: string } | undefined
  /** The token; fails where none came. */
  readonly token: string
  readonly problem: Frame | undefined
}

export async function peer(server: Server, revision: RevisionId, options: PeerOptions = {}): Promise<Peer> {
  const wire = await speak(server, revision, { capabilities: { ...declares, elicitation: {} }, ...options })
  return Object.assign(wire, {
    call: async (tool: string, text?: string, token?: unknown) =>
      called(await wire.ask('tools/call', callParams(tool, text, token))),
  })
}

export function callParams(tool: string, text?: string, token?: unknown): Frame {
  return {
    name: tool,
    ...(text === undefined ? {} : { arguments: { text } }),
    ...(token === undefined ? {} : { _meta: { [stateExtension]: { session_state: token } } }),
  }
}

export function called(frame: Frame): Called {
  const result = resultOf(frame)
  const meta = (result['_meta'] ?? {}) as Frame
  const [block] = (result['content'] ?? []) as { text: string }[]
  const state = meta[stateExtension] as Called['state']
  return {
    text: block?.text ?? '',
    state,
    get token() {
      if (state?.session_state === undefined) throw new Error(`No token came: ${JSON.stringify(frame)}`)
      return state.session_state
    },
    problem: meta['dev.vivarium/problem'] as Frame | undefined,
  }
}

/** One POST, without the socket. */
export function post(server: Server, body: Frame, headers: Record<string, string> = {}, principal?: string): Promise<Posted> {
  return new Promise(resolve => {
    const who = principal === undefined ? {} : { principal: { id: principal } }
    const caller: Caller = { carrier: 'http', connection: {}, header: name => headers[name], ...who }
    const lane: Lane = {
      send: (frame, hints) => {
        if (hints?.final === true)
          resolve({ frame: JSON.parse(frame), status: hints.status ?? 200, session: hints.headers?.['mcp-session-id'] })
      },
      end: hints => resolve({ frame: {}, status: hints?.status ?? 202, session: undefined }),
      closed: false,
      onClose: () => {},
    }
    server.acceptor.deliver(JSON.stringify(body), caller, lane)
  })
}

export interface Posted {
  readonly frame: Frame
  readonly status: number
  readonly session: string | undefined
}
