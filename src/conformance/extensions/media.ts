/** E10: media that are looked at before they are taken. */
import { isMade, isRefusedBy } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { objectIn, objectsIn } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type Scene } from '../steps.ts'
import { bringing, brings, type Finder, isPlain, saidOf, toolThat } from '../tools.ts'

const row = extensionTable('media')

/** A picture of one pixel, and a page that says that it is one. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const html = 'PCFkb2N0eXBlIGh0bWw+PHNjcmlwdD48L3NjcmlwdD4='

const takesPictures = (tool: Json): boolean => {
  const types = saidOf(tool, 'media').input_types
  const named = Array.isArray(types) && types.some(type => type === 'image/*' || type === 'image/png')
  return isPlain(tool) && named && slotOf(tool) !== undefined
}
const mostOf = (tool: Json) => Number(saidOf(tool, 'media').max_input_size_bytes)
const pictures = toolThat('takes pictures', tool => takesPictures(tool) && !brings(tool, 'media:unannounced'))
const strict = toolThat('takes pictures and is strict', tool => takesPictures(tool) && saidOf(tool, 'media').strict === true)
const sized = toolThat('takes pictures of at most 64 KiB', tool => takesPictures(tool) && mostOf(tool) <= 65_536)
const unannounced = bringing('media:unannounced')

/** The argument that is an object with `mimeType` and `data`. */
function slotOf(tool: Json): string | undefined {
  const properties = objectIn(tool, 'inputSchema', 'properties')
  return Object.keys(properties).find(name => {
    const inner = objectIn(properties[name], 'properties')
    return inner.mimeType !== undefined && inner.data !== undefined
  })
}

/** Calls a tool with a picture, or what is said to be one. */
const given = (finder: Finder, mimeType: string, data: string | ((tool: Json) => string)) =>
  callTool(finder, ({ tool }: Scene) => {
    const { args, listed } = tool(finder)
    const bytes = typeof data === 'string' ? data : data(listed)
    return { args: { ...args, [String(slotOf(listed))]: { mimeType, data: bytes } } }
  })
// No base64 at all, so that whoever decodes it first fails in another way.
const tooLarge = (tool: Json) => '!'.repeat(Math.ceil(((mostOf(tool) + 64) * 4) / 3))

export const media: readonly Scenario[] = [
  row('E10-1', 'More than a tool takes is refused, by its length alone', [
    given(sized, 'image/png', tooLarge).expect({ 'A picture that is too large': isRefusedBy('PAYLOAD_TOO_LARGE') }),
  ]),
  row('E10-3', 'A strict tool refuses a type that it does not announce', [
    given(strict, 'application/pdf', 'JVBERi0xLjQK').expect({ 'A type that is not announced': isRefusedBy('INVALID_INPUT') }),
  ]),
  row('E10-4', 'A page that says it is a picture is refused', [
    given(pictures, 'image/png', html).expect({ 'A type that the first bytes contradict': isRefusedBy('INVALID_INPUT') }),
  ]),
  row(
    'E10-5',
    'Types match without regard to case and parameters, and wildcards match',
    ['image/png', 'IMAGE/PNG', 'image/png; charset=binary'].map(type =>
      given(pictures, type, png).expect({ [`A picture of the type ${type}`]: isMade }),
    ),
  ),
  row('E10-6', 'A result of a type that is not announced is given, with a warning', [
    given(unannounced, 'image/png', png).expect({
      'A call whose result is of another type': isMade,
      'The result was not given': ({ result }) => objectsIn(result, 'content').length > 0,
      'There is no warning of a type that is not announced': it => objectsIn(it.member('media'), 'warnings').length > 0,
    }),
  ]),
]
