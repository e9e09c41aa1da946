/** E8: results in parts, and the same call made again after one of them. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import { extensionId, isPlain, saidOf, toolThat } from '../tools.ts'
import { otherArguments } from './idempotency.ts'
import { scenariosOf } from './scenario-of.ts'
import type { Called, Talk } from './talk.ts'

const scenario = scenariosOf('streaming')

const streams = (tool: Json): boolean => isPlain(tool) && saidOf(tool, 'streaming')['supports_streaming'] === true
const streaming = toolThat('streams', streams)
const argued = toolThat(
  'streams and takes an argument',
  tool =>
    streams(tool) &&
    isRecord(tool['inputSchema']) &&
    Array.isArray(tool['inputSchema']['required']) &&
    tool['inputSchema']['required'].length > 0,
)
const progressing = toolThat(
  'tells of its progress (test_tool_with_progress)',
  tool => tool['name'] === 'test_tool_with_progress',
)

interface Chunk {
  readonly frame: Frame
  readonly progress: unknown
  readonly token: unknown
  readonly said: Json
}

function progressFrames(frames: readonly Frame[], token: string): readonly Frame[] {
  return frames.filter(
    ({ way, value }) =>
      way === 'in' &&
      isRecord(value) &&
      value['method'] === 'notifications/progress' &&
      isRecord(value['params']) &&
      value['params']['progressToken'] === token,
  )
}

function chunksIn(frames: readonly Frame[], token: string): readonly Chunk[] {
  return progressFrames(frames, token).flatMap(frame => {
    const params = isRecord(frame.value) && isRecord(frame.value['params']) ? frame.value['params'] : {}
    const said = isRecord(params['_meta']) ? params['_meta'][extensionId('streaming')] : undefined
    if (!isRecord(said) || said['type'] !== 'stream_chunk') return []
    return [{ frame, progress: params['progress'], token: said['checkpoint_token'], said }]
  })
}

let tokens = 0

async function streamed(
  talk: Talk,
  tool: { readonly name: string; readonly args: Json },
  resume?: Json,
): Promise<{ called: Called; chunks: readonly Chunk[]; token: string }> {
  const token = `kit-${++tokens}`
  const called = await talk.call(tool.name, tool.args, {
    progressToken: token,
    ...(resume === undefined ? {} : { streaming: { resume } }),
  })
  await talk.peer.settled()
  return { called, chunks: chunksIn(talk.peer.frames, token), token }
}

const textOf = (chunks: readonly Chunk[]): string =>
  chunks.map(({ said }) => (typeof said['data'] === 'string' ? said['data'] : '')).join('')
const positionOf = (chunk: Chunk | undefined): Json => ({
  operation_id: chunk?.said['operation_id'],
  checkpoint_token: chunk?.token,
})
const all = (chunks: readonly Chunk[]): readonly Frame[] => chunks.map(({ frame }) => frame)

export const streamings: readonly Scenario[] = [
  scenario({
    id: 'E8-1',
    title: 'Who gives no progressToken gets no progress',
    tools: { streaming },
    run: async ({ talk, tools: { streaming }, made, expect }) => {
      made(await talk.call(streaming.name, streaming.args), 'A call without a progressToken')
      await talk.peer.settled()
      expect(
        talk.peer.heard('notifications/progress').length === 0,
        'Progress came without a progressToken',
        talk.peer.heard('notifications/progress'),
      )
    },
  }),
  scenario({
    id: 'E8-2',
    title: 'Progress rises with every notification',
    tools: { progressing },
    run: async ({ talk, tools: { progressing }, made, expect, bench }) => {
      const token = `kit-${++tokens}`
      made(await talk.call(progressing.name, progressing.args, { progressToken: token }), 'A call that tells of its progress')
      const frames = progressFrames(talk.peer.frames, token)
      if (frames.length === 0) return bench.fail('No progress came', talk.peer.frames)
      const numbers = frames.map(({ value }) => Number((value as { params: Json }).params['progress']))
      expect(
        numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0)),
        'Progress does not rise',
        frames,
      )
    },
  }),
  scenario({
    id: 'E8-3',
    also: ['E8-2'],
    title: 'Chunks are numbered 0, 1, 2 … without a gap, and exactly one is the last',
    tools: { streaming },
    run: async ({ talk, tools: { streaming }, made, expect }) => {
      const { called, chunks } = await streamed(talk, streaming)
      made(called, 'A call that streams')
      expect(chunks.length > 1, 'A tool that streams gave no chunks', called.frames)
      expect(
        chunks.every(({ said }, at) => said['sequence'] === at),
        'The sequence of chunks has a gap or a repetition',
        all(chunks),
      )
      expect(
        chunks.filter(({ said }) => said['is_final'] === true).length === 1 && chunks.at(-1)?.said['is_final'] === true,
        'Not exactly the last chunk is_final',
        all(chunks),
      )
      expect(
        new Set(chunks.map(({ said }) => said['operation_id'])).size === 1,
        'Chunks of one call have several operation_ids',
        all(chunks),
      )
      expect(
        chunks.every(({ progress }, at) => at === 0 || Number(progress) > Number(chunks[at - 1]?.progress)),
        'Progress does not rise from chunk to chunk',
        all(chunks),
      )
    },
  }),
  scenario({
    id: 'E8-4',
    title: 'The chunks together are the result, and the result is whole by itself',
    tools: { streaming },
    run: async ({ talk, tools: { streaming }, made, expect }) => {
      const { called, chunks } = await streamed(talk, streaming)
      made(called, 'A call that streams')
      expect(called.text !== '' && textOf(chunks) === called.text, 'The chunks together are not the result', [
        ...all(chunks),
        called.answer.frame,
      ])
    },
  }),
  scenario({
    id: 'E8-5',
    title: 'After the answer nothing of the call comes any more',
    tools: { streaming },
    run: async ({ talk, tools: { streaming }, expect }) => {
      const { called, token } = await streamed(talk, streaming)
      await talk.peer.hears('nothing', 150)
      const frames = talk.peer.frames
      const after = progressFrames(frames.slice(frames.indexOf(called.answer.frame as Frame) + 1), token)
      expect(after.length === 0, 'Progress came after the answer', after)
    },
  }),
  ...resumed(),
]

function resumed(): readonly Scenario[] {
  return [
    scenario({
      id: 'E8-6',
      also: ['E8-10'],
      title: 'A call that was cut off goes on after the last chunk that came: same operation, next number, nothing done twice',
      carriers: ['http'],
      tools: { streaming },
      run: async ({ talk, tools: { streaming }, made, expect }) => {
        const token = `kit-${++tokens}`
        const begun = talk.begin(streaming.name, streaming.args, { progressToken: token })
        begun.called.catch(() => undefined)
        await talk.peer.next((_, frame) => chunksIn([frame], token).length > 0)
        begun.abort()
        const before = chunksIn(talk.peer.frames, token)
        const { called, chunks } = await streamed(talk, streaming, positionOf(before[0]))
        made(called, 'The call that goes on')
        expect(
          chunks.every(({ said }) => said['operation_id'] === before[0]?.said['operation_id']),
          'The call goes on as another operation',
          all(chunks),
        )
        expect(
          chunks.every(({ said }, at) => said['sequence'] === at + 1) && chunks.at(-1)?.said['is_final'] === true,
          'It does not go on with the next chunk, to the last',
          all(chunks),
        )
        expect(
          textOf([...before.slice(0, 1), ...chunks]) === called.text,
          'What came before and after does not make the result',
          [...all(chunks), called.answer.frame],
        )
      },
    }),
    scenario({
      id: 'E8-7',
      title: 'A checkpoint is good for the same arguments alone, and what is none is refused',
      tools: { argued },
      run: async ({ talk, tools: { argued }, refused, expect }) => {
        const { chunks } = await streamed(talk, argued)
        const position = positionOf(chunks[0])
        const other = await streamed(talk, { name: argued.name, args: otherArguments(argued.args) }, position)
        refused(other.called, 'CHECKPOINT_NOT_FOUND', 'A checkpoint of other arguments')
        expect(other.called.problem['category'] === 'permanent', 'CHECKPOINT_NOT_FOUND is not permanent', other.called.frames)
        const forged = await streamed(talk, argued, { ...position, checkpoint_token: 'checkpoint-1' })
        refused(forged.called, 'CHECKPOINT_NOT_FOUND', 'A checkpoint that is none')
        expect(forged.chunks.length === 0, 'A refused call gave chunks: it began anew', all(forged.chunks))
      },
    }),
    scenario({
      id: 'E8-8',
      title: 'A call that had ended gives what follows a checkpoint, and its result, again',
      tools: { streaming },
      run: async ({ talk, tools: { streaming }, made, expect }) => {
        const first = await streamed(talk, streaming)
        const again = await streamed(talk, streaming, positionOf(first.chunks[0]))
        made(again.called, 'The call made again after its first chunk')
        expect(again.called.text === first.called.text, 'It has another result: it ran again', [
          first.called.answer.frame,
          again.called.answer.frame,
        ])
        const numbers = JSON.stringify(again.chunks.map(({ said }) => said['sequence']))
        expect(
          numbers === JSON.stringify(first.chunks.slice(1).map(({ said }) => said['sequence'])),
          'It does not give the chunks that follow',
          all(again.chunks),
        )
      },
    }),
  ]
}
