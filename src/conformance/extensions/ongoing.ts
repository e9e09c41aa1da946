/** E14: what a call leaves the next one finds, by a token that its client echoes. */
import { alike, hasMeta, isMade, isRefusedBy, type PeerAnswer, shownIn, showsAs, showsOtherThan } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { is, listIn, objectIn } from '../expectations.ts'
import { extensionId, isPlain, otherArguments, saidOf } from '../said.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext } from '../steps.ts'
import { bringing, type Finder, toolThat } from '../tools.ts'

const row = extensionTable('state')

const branching = bringing('state:branch')
const conflicting = bringing('state:conflict')
const large = bringing('state:large')

/** The token of a state that a call has left. */
export const stateTokenIn = (called: PeerAnswer): unknown => called.member('state').session_state
/** A call on a state. */
export const onState = (token: unknown) => ({ say: { state: { session_state: token } } })
/** A call on the state that an earlier answer has left. */
const on = (at: number) => (x: ScenarioContext) => onState(stateTokenIn(x.was(at)))

const unsealed = (wrong: (token: string) => string) =>
  callTool(branching, x => onState(wrong(String(stateTokenIn(x.was(0)))))).expect({
    'A token of another server': isRefusedBy('STATE_INVALID'),
    'STATE_INVALID has no details.recovery: "restart"': it =>
      JSON.stringify(it.problem.details ?? {}).includes('"recovery":"restart"'),
  })

/** E14: state that travels with calls. */
export const state: readonly Scenario[] = [
  row('E14-2', 'A token is at most 64 KiB, however much is remembered').by([
    callTool(large).expect({
      'A call that stores much state': isMade,
      'A call that stores state returns no session_state': hasMeta('state', { session_state: is.word }),
      'session_state is longer than 64 KiB': it => String(stateTokenIn(it)).length <= 65_536,
    }),
  ]),
  row('E14-3', 'A tampered token is refused, and the recovery is to restart').by([
    callTool(branching).expect({ 'A call with state returns no session_state': hasMeta('state', { session_state: is.word }) }),
    unsealed(() => 'eyJmb3JnZWQiOnRydWV9'),
    unsealed(token => {
      const middle = Math.floor(token.length / 2)
      return `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`
    }),
  ]),
  row('E14-4', 'Each call that changes the state returns a new token, which continues it').by([
    callTool(branching),
    callTool(branching, on(0)).expect({
      'A call on the state of the first': isMade,
      'A call that changed the state returns the old token, or does not say so': (it, { was }) =>
        stateTokenIn(it) !== stateTokenIn(was(0)) && it.member('state').state_changed === true,
      'A token has no expires_at': hasMeta('state', { expires_at: is.time }),
      'The second call did not find the state of the first': showsOtherThan(0),
    }),
    callTool(branching).expect({ 'A call without a token found a state': showsAs(0) }),
  ]),
  row('E14-5', 'Two calls on one token have separate states').by([
    callTool(branching),
    callTool(branching, on(0)),
    callTool(branching, on(0)).expect({
      'The first call on a token': (_, x, says) => isMade(x.was(1), x, says),
      'The second call on the same token': isMade,
      'Two calls on one token share their state': (it, { was }) => stateTokenIn(was(1)) !== stateTokenIn(it) && alike(was(1), it),
    }),
    callTool(branching, on(1)).expect({
      'A call on the first branch': isMade,
      'A branch lost its state': showsOtherThan(1),
    }),
  ]),
  row('E14-5c E14-5', 'For a tool that requires order, the later of two calls on one token is refused').by([
    callTool(conflicting),
    callTool(conflicting, on(0)).expect({ 'The first call on a token': isMade }),
    callTool(conflicting, on(0)).expect({ 'The second call on the same token': isRefusedBy('STATE_CONFLICT') }),
  ]),
  row('E14-6', 'Two conversations on one connection do not mix').by([
    callTool(branching),
    callTool(branching),
    callTool(branching, on(0)),
    callTool(branching, on(1)).expect({
      'One conversation sees the state of another': (it, { was }) =>
        shownIn(was(2)) === shownIn(it) && shownIn(was(0)) === shownIn(was(1)),
    }),
  ]),
]

// ── E8: results in parts, and the same call made again after one of them.

const streamRow = extensionTable('streaming')

const streams = (tool: Json): boolean => isPlain(tool) && saidOf(tool, 'streaming').supports_streaming === true
const streaming = toolThat('streams', streams)
const argued = toolThat(
  'streams and takes an argument',
  tool => streams(tool) && listIn(tool, 'inputSchema', 'required').length > 0,
)
const progressing = toolThat('reports progress (test_tool_with_progress)', tool => tool.name === 'test_tool_with_progress')

interface Chunk {
  readonly frame: Frame
  readonly progress: number
  readonly said: Json
}

function progressFrames(frames: readonly Frame[], token: string): readonly Frame[] {
  return frames.filter(({ way, value }) => {
    const isProgress = objectIn(value).method === 'notifications/progress'
    return way === 'in' && isProgress && objectIn(value, 'params').progressToken === token
  })
}

function chunksIn(frames: readonly Frame[], token: string): readonly Chunk[] {
  return progressFrames(frames, token).flatMap(frame => {
    const params = objectIn(frame.value, 'params')
    const said = objectIn(params, '_meta', extensionId('streaming'))
    return said.type === 'stream_chunk' ? [{ frame, progress: Number(params.progress), said }] : []
  })
}

let tokens = 0

interface StreamedCall {
  readonly called: PeerAnswer
  readonly chunks: readonly Chunk[]
  readonly token: string
}

/** Calls a tool that streams; `resume`: goes on after a chunk. */
async function streamed(x: ScenarioContext, tool: Finder, resume?: Json, args?: Json): Promise<StreamedCall> {
  const token = `kit-${++tokens}`
  const say = { progressToken: token, ...(resume === undefined ? {} : { streaming: { resume } }) }
  const called = await x.call(tool, { say, ...(args === undefined ? {} : { args }) })
  await x.peer.settled()
  return { called, chunks: chunksIn(x.peer.frames, token), token }
}

const textOf = (chunks: readonly Chunk[]): string =>
  chunks.map(({ said }) => (typeof said.data === 'string' ? said.data : '')).join('')
const positionOf = (chunk: Chunk | undefined): Json => ({
  operation_id: chunk?.said.operation_id,
  checkpoint_token: chunk?.said.checkpoint_token,
})
const all = (chunks: readonly Chunk[]): readonly Frame[] => chunks.map(({ frame }) => frame)
const rises = (numbers: readonly number[]): boolean => numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0))

/** E8: results in chunks. */
export const streamings: readonly Scenario[] = [
  streamRow('E8-1', 'Without a progressToken there is no progress').by(streaming, async x => {
    x.made(await x.call(streaming), 'A call without a progressToken')
    await x.peer.settled()
    const heard = x.peer.heard('notifications/progress')
    x.expect(heard.length === 0, 'Progress came without a progressToken', heard)
  }),
  streamRow('E8-2', 'Progress increases with every notification').by([
    callTool(progressing, x => ({ say: { progressToken: x.key() } })).expect({
      'A call that reports progress': isMade,
      'No progress came': (_, { peer, key }) => progressFrames(peer.frames, key()).length > 0,
      'Progress does not increase': (_, { peer, key }) =>
        rises(progressFrames(peer.frames, key()).map(({ value }) => Number(objectIn(value, 'params').progress))),
    }),
  ]),
  streamRow('E8-3 E8-2', 'Chunks are numbered 0, 1, 2 … without a gap, and exactly one is the last').by(streaming, async x => {
    const { called, chunks } = await streamed(x, streaming)
    x.made(called, 'A call that streams')
    x.expect(chunks.length > 1, 'A streaming tool sent no chunks', called.frames)
    const finals = chunks.filter(({ said }) => said.is_final === true)
    x.hold(chunks, {
      'The sequence of chunks has a gap or a repetition': () => chunks.every(({ said }, at) => said.sequence === at),
      'Not exactly the last chunk is_final': () => finals.length === 1 && finals[0] === chunks.at(-1),
      'Chunks of one call have several operation_ids': () => new Set(chunks.map(({ said }) => said.operation_id)).size === 1,
      'Progress does not increase from chunk to chunk': () => rises(chunks.map(({ progress }) => progress)),
    })
  }),
  streamRow('E8-4', 'The chunks together are the result, and the result is also complete on its own').by(streaming, async x => {
    const { called, chunks } = await streamed(x, streaming)
    x.made(called, 'A call that streams')
    const whole = called.text !== '' && textOf(chunks) === called.text
    x.expect(whole, 'The chunks together are not the result', [...all(chunks), called.answer.frame])
  }),
  streamRow('E8-5', 'After the response, no more chunks or progress come').by(streaming, async x => {
    const { called, token } = await streamed(x, streaming)
    await x.peer.hears('nothing', 150)
    const frames = x.peer.frames
    const after = progressFrames(frames.slice(frames.indexOf(called.answer.frame as Frame) + 1), token)
    x.expect(after.length === 0, 'Progress came after the answer', after)
  }),
  streamRow(
    'E8-6 E8-10',
    'An interrupted call continues after the last received chunk: same operation, next number, nothing done twice',
  ).by({ carriers: ['http'], needs: [streaming] }, async x => {
    const token = `kit-${++tokens}`
    const begun = x.begin(streaming, { say: { progressToken: token } })
    begun.called.catch(() => undefined)
    await x.peer.next((_, frame) => chunksIn([frame], token).length > 0)
    begun.abort()
    const [first] = chunksIn(x.peer.frames, token)
    const { called, chunks } = await streamed(x, streaming, positionOf(first))
    x.made(called, 'The continued call')
    const same = chunks.every(({ said }) => said.operation_id === first?.said.operation_id)
    x.expect(same, 'The call continues as another operation', all(chunks))
    const next = chunks.every(({ said }, at) => said.sequence === at + 1) && chunks.at(-1)?.said.is_final === true
    x.expect(next, 'The call does not continue with the next chunk, up to the last', all(chunks))
    const whole = textOf([...(first === undefined ? [] : [first]), ...chunks]) === called.text
    x.expect(whole, 'The chunks before and after together are not the result', [...all(chunks), called.answer.frame])
  }),
  streamRow('E8-7', 'A checkpoint is valid only for the same arguments, and an invalid one is refused').by(argued, async x => {
    const { chunks } = await streamed(x, argued)
    const position = positionOf(chunks[0])
    const other = await streamed(x, argued, position, otherArguments(x.tool(argued).args))
    x.refused(other.called, 'CHECKPOINT_NOT_FOUND', 'A checkpoint of other arguments')
    x.expect(other.called.problem.category === 'permanent', 'CHECKPOINT_NOT_FOUND is not permanent')
    const forged = await streamed(x, argued, { ...position, checkpoint_token: 'checkpoint-1' })
    x.refused(forged.called, 'CHECKPOINT_NOT_FOUND', 'An invalid checkpoint')
    x.expect(forged.chunks.length === 0, 'A refused call sent chunks: it started again', all(forged.chunks))
  }),
  streamRow('E8-8', 'A call that has ended returns again what follows a checkpoint, and its result').by(streaming, async x => {
    const first = await streamed(x, streaming)
    const again = await streamed(x, streaming, positionOf(first.chunks[0]))
    x.made(again.called, 'The call repeated after its first chunk')
    const both = [first.called.answer.frame, again.called.answer.frame]
    x.expect(again.called.text === first.called.text, 'It has another result: it ran again', both)
    const [rest, given] = [first.chunks.slice(1), again.chunks].map(list => JSON.stringify(list.map(({ said }) => said.sequence)))
    x.expect(rest === given, 'The following chunks are missing', all(again.chunks))
  }),
]
