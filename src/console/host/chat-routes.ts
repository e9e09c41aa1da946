/** The routes of conversations: turns, messages, cancelling, undoing. */
import { Problem } from '../../core/problem.ts'
import type { HostConversation } from '../../host/loop/conversation.ts'
import type { Turn } from '../../host/loop/turn.ts'
import type { Attachment, OfferedPrompt as HostPrompt } from '../../host/loop/user-input.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Conversation, OfferedPrompt } from '../contract/conversations.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pageOf, positionOf, slice } from '../query.ts'
import type { AgentSource } from './agent.ts'
import { type HostTable, nothing } from './table.ts'
import { callOf, turnDetail, turnRow } from './turns.ts'
import { undoPlanOf, undoReportOf } from './undo.ts'

const mostExamples = 20
const mostCompletions = 100
const longestResult = 8_000_000

/** The routes of conversations. */
export function chatRoutes(agent: AgentSource): HostTable {
  const { host, turns, facts } = agent
  const row = async (turn: Turn, whole: boolean) => turnRow(turn, whole, turns.of(turn), await previewOf(agent, turn))
  return {
    'GET /host': {
      ...nothing,
      role: 'viewer',
      answer: () => ({ model: host.model.id, ...facts, examples: facts.examples.slice(0, mostExamples) }),
    },
    'GET /conversations': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => {
        const { items, ...rest } = slice(await newestOf(agent), pageOf(query))
        return { items: items.map(each => ({ ...each, busy: host.conversation(each.id).busy })), ...rest }
      },
    },
    'GET /conversations/:conversation/turns': {
      ...nothing,
      role: 'viewer',
      query: { undone: ['1'], ...paged },
      answer: async ({ names, query, whole }) => {
        const { after, limit } = pageOf({ after: query['after'], limit: query['limit'] ?? 100 })
        const below = after === undefined ? Number.POSITIVE_INFINITY : positionOf(after)
        const all = await conversation(agent, names).turns({ undone: query['undone'] === '1' })
        const older = all.filter(({ seq }) => seq < below)
        const items = older.slice(-limit).reverse()
        const last = items.at(-1)
        const found = await Promise.all(items.map(turn => row(turn, whole)))
        return older.length > items.length && last !== undefined ? { items: found, next: String(last.seq) } : { items: found }
      },
    },
    'POST /conversations/:conversation/turns': {
      ...nothing,
      role: 'operator',
      status: 202,
      body: { text: 'long', 'attach?': 'list' },
      writes: true,
      answer: async ({ names, body, whole }) => {
        const talk = conversation(agent, names)
        const turn = await accepted(talk.send(String(body['text']), { attach: attachmentsIn(body['attach']) }))
        turns.begin(turn)
        return row(turn, whole)
      },
    },
    'GET /conversations/:conversation/turns/:seq': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names, whole }) => {
        const turn = await turnIn(agent, names)
        return turnDetail(turn, whole, turns.of(turn), await previewOf(agent, turn))
      },
    },
    'GET /conversations/:conversation/turns/:seq/calls/:call': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names, whole }) => {
        const turn = await turnIn(agent, names)
        const call = turn.calls.find(({ n }) => String(n) === names['call'])
        if (call === undefined) throw missing('call', 'Reload the turn.')
        return callOf(call, whole, turns.of(turn), longestResult)
      },
    },
    'POST /conversations/:conversation/turns/:seq/cancel': {
      ...nothing,
      role: 'operator',
      status: 204,
      writes: true,
      answer: async ({ names, session }) => {
        const turn = await turnIn(agent, names)
        if (turn.status !== 'running' && turn.status !== 'waiting')
          throw new ConsoleFailure('TURN_ENDED', 'The turn does not run any more.', 'Nothing is left to do.')
        turn.cancel(`${session.by} stopped it in the console`)
        return undefined
      },
    },
    'GET /conversations/:conversation/turns/:seq/undo': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names, whole }) => undoPlanOf(await conversation(agent, names).turns(), await turnIn(agent, names), whole),
    },
    'POST /conversations/:conversation/turns/:seq/undo': {
      ...nothing,
      role: 'operator',
      body: { digest: 'text' },
      writes: true,
      answer: async ({ names, body }) => {
        const turn = await turnIn(agent, names)
        const { digest } = await undoPlanOf(await conversation(agent, names).turns(), turn, true)
        if (digest !== body['digest'])
          throw new ConsoleFailure('DIGEST_MISMATCH', 'The undo would do something else by now.', 'Read the plan again.', {
            digest,
          })
        return undoReportOf(await turn.undo())
      },
    },
    'POST /conversations/:conversation/resume': {
      ...nothing,
      role: 'operator',
      status: 204,
      writes: true,
      answer: async ({ names }) => void (await conversation(agent, names).resume()) as undefined,
    },
    'GET /prompts': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => slice((await host.prompts()).map(promptOf), pageOf(query)),
    },
    'GET /conversations/:conversation/complete': {
      ...nothing,
      role: 'operator',
      query: { line: 'text' },
      answer: async ({ names, query }) => {
        const line = String(query['line'] ?? '')
        const found = line.startsWith('/') ? await conversation(agent, names).complete(line) : []
        return { items: found.slice(0, mostCompletions) }
      },
    },
  }
}

/** The newest first. */
async function newestOf({ host }: AgentSource): Promise<readonly Omit<Conversation, 'busy'>[]> {
  const all = await host.conversations()
  return all
    .map(({ id, began, turns, last = began }) => ({ id, began, last, turns }))
    .sort((one, other) => other.last - one.last || (one.id < other.id ? -1 : 1))
}

function conversation({ host }: AgentSource, { conversation: id = '' }: Readonly<Record<string, string>>): HostConversation {
  if (id.length > 200) throw missing('conversation', 'Names have at most 200 characters.')
  return host.conversation(id)
}

async function turnIn(agent: AgentSource, names: Readonly<Record<string, string>>): Promise<Turn> {
  const seq = positionOf(names['seq'] ?? '')
  const found = (await conversation(agent, names).turns({ undone: true })).find(turn => turn.seq === seq)
  if (found === undefined) throw missing('turn', 'Reload the conversation.')
  return found
}

/** What the host refuses is told with its reason: a prompt that does not exist, too many turns that wait. */
async function accepted(sending: Promise<Turn>): Promise<Turn> {
  try {
    return await sending
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { code, message, suggestion = 'Send something else.' } = error
    throw new ConsoleFailure('REFUSED', clip(message, 500), clip(suggestion, 500), { code }, { cause: error })
  }
}

/** The text of the event that began a turn. */
async function previewOf({ host }: AgentSource, { from }: Turn): Promise<string | undefined> {
  if (from.kind !== 'event') return undefined
  return (await host.inbox.get(from.server, from.eventId))?.preview
}

function attachmentsIn(given: unknown): readonly Attachment[] {
  if (!Array.isArray(given)) return []
  return given.map((each: unknown) => {
    const { server, uri } = isRecord(each) ? each : {}
    if (typeof server === 'string' && typeof uri === 'string') return { server, uri }
    throw new ConsoleFailure('INVALID_INPUT', 'An attachment is not one of a server.', 'Give { server, uri }.', {
      member: 'attach',
    })
  })
}

function promptOf({ command, server, prompt }: HostPrompt): OfferedPrompt {
  const { title, description, arguments: takes = [] } = prompt
  return {
    ...{ command, server },
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    arguments: takes.map(({ name, description: about, required }) => ({
      name,
      ...(about !== undefined && { description: about }),
      ...(required !== undefined && { required }),
    })),
  }
}

function missing(what: string, fix: string): ConsoleFailure {
  return new ConsoleFailure('NOT_FOUND', `There is no such ${what}.`, fix)
}
