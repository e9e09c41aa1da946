/**
 * Serves the redactor on stdio. REDACTOR_KINDS: only these kinds, with commas between them. REDACTOR_ALLOW: addresses that may be
 * seen, such as `help@example.com,@example.org`.
 */
import { createRedactor } from './redactor.ts'
import { kinds } from './secrets.ts'

const list = (name: string) =>
  process.env[name]
    ?.split(',')
    .map(word => word.trim())
    .filter(word => word !== '')

const wanted = list('REDACTOR_KINDS')
const unknown = wanted?.find(word => !kinds.some(kind => kind === word))
if (unknown !== undefined) throw new Error(`REDACTOR_KINDS: "${unknown}" is not a kind. Use ${kinds.join(', ')}`)

await using server = createRedactor({
  kinds: wanted === undefined ? kinds : kinds.filter(kind => wanted.includes(kind)),
  allow: list('REDACTOR_ALLOW') ?? [],
})
await server.stdio()
