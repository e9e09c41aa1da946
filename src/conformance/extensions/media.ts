/** E10: media that are looked at before they are taken. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, brings, isPlain, saidOf, toolThat } from '../tools.ts'
import { listOf, scenariosOf } from './scenario-of.ts'

const scenario = scenariosOf('media')

/** A picture of one pixel, and a page that says that it is one. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const html = 'PCFkb2N0eXBlIGh0bWw+PHNjcmlwdD48L3NjcmlwdD4='

const takesPictures = (tool: Json): boolean => {
  const types = saidOf(tool, 'media')['input_types']
  return (
    isPlain(tool) &&
    Array.isArray(types) &&
    types.some(type => type === 'image/*' || type === 'image/png') &&
    slotOf(tool) !== undefined
  )
}
const pictures = toolThat('takes pictures', tool => takesPictures(tool) && !brings(tool, 'media:unannounced'))
const strict = toolThat('takes pictures and is strict', tool => takesPictures(tool) && saidOf(tool, 'media')['strict'] === true)
const sized = toolThat(
  'takes pictures of at most 64 KiB',
  tool => takesPictures(tool) && Number(saidOf(tool, 'media')['max_input_size_bytes']) <= 65_536,
)

/** The argument that is an object with `mimeType` and `data`. */
function slotOf(tool: Json): string | undefined {
  const schema = tool['inputSchema']
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.keys(properties).find(name => {
    const property = properties[name]
    const inner = isRecord(property) && isRecord(property['properties']) ? property['properties'] : {}
    return inner['mimeType'] !== undefined && inner['data'] !== undefined
  })
}

const given = (tool: { readonly listed: Json; readonly args: Json }, mimeType: string, data: string): Json => ({
  ...tool.args,
  [String(slotOf(tool.listed))]: { mimeType, data },
})

export const media: readonly Scenario[] = [
  scenario({
    id: 'E10-1',
    title: 'More than a tool takes is refused, by its length alone',
    tools: { sized },
    run: async ({ talk, tools: { sized }, refused }) => {
      const most = Number(saidOf(sized.listed, 'media')['max_input_size_bytes'])
      // No base64 at all, so that whoever decodes it first fails in another way.
      refused(
        await talk.call(sized.name, given(sized, 'image/png', '!'.repeat(Math.ceil(((most + 64) * 4) / 3)))),
        'PAYLOAD_TOO_LARGE',
        'A picture that is too large',
      )
    },
  }),
  scenario({
    id: 'E10-3',
    title: 'A strict tool refuses a type that it does not announce',
    tools: { strict },
    run: async ({ talk, tools: { strict }, refused }) => {
      refused(
        await talk.call(strict.name, given(strict, 'application/pdf', 'JVBERi0xLjQK')),
        'INVALID_INPUT',
        'A type that is not announced',
      )
    },
  }),
  scenario({
    id: 'E10-4',
    title: 'A page that says it is a picture is refused',
    tools: { pictures },
    run: async ({ talk, tools: { pictures }, refused }) => {
      refused(
        await talk.call(pictures.name, given(pictures, 'image/png', html)),
        'INVALID_INPUT',
        'A type that the first bytes contradict',
      )
    },
  }),
  scenario({
    id: 'E10-5',
    title: 'Types match without regard to case and parameters, and wildcards match',
    tools: { pictures },
    run: async ({ talk, tools: { pictures }, made }) => {
      for (const type of ['image/png', 'IMAGE/PNG', 'image/png; charset=binary'])
        made(await talk.call(pictures.name, given(pictures, type, png)), `A picture of the type ${type}`)
    },
  }),
  scenario({
    id: 'E10-6',
    title: 'A result of a type that is not announced is given, with a warning',
    tools: { unannounced: bringing('media:unannounced') },
    run: async ({ talk, tools: { unannounced }, made, expect }) => {
      const called = await talk.call(unannounced.name, given(unannounced, 'image/png', png))
      made(called, 'A call whose result is of another type')
      expect(listOf(called.result['content']).length > 0, 'The result was not given', called.frames)
      expect(
        listOf(called.member('media')['warnings']).length > 0,
        'There is no warning of a type that is not announced',
        called.frames,
      )
    },
  }),
]
