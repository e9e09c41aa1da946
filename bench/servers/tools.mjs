/**
 * The tools every measured server offers, as plain JSON Schema and plain functions.
 * No import: the floor and the JSON Schema contender must not pay for a schema library.
 */

export const info = { name: 'bench', version: '1.0.0' }

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const text = (minLength, maxLength) => ({ type: 'string', minLength, maxLength })
const whole = (minimum, maximum) => ({ type: 'integer', minimum, maximum })

/** An object schema with every property required, spelled as Zod spells its own, so that lists weigh the same everywhere. */
function object(properties) {
  return {
    $schema: DIALECT,
    type: 'object',
    properties,
    required: Object.keys(properties),
  }
}

export const echoSchema = object({ text: { type: 'string' } })

export const form20Schema = object({
  name: text(1, 200),
  email: text(3, 200),
  phone: text(3, 30),
  street: text(1, 100),
  city: text(1, 100),
  zip: text(3, 12),
  country: text(2, 2),
  language: { type: 'string', enum: ['de', 'en', 'fr', 'es'] },
  plan: { type: 'string', enum: ['free', 'pro', 'team'] },
  currency: { type: 'string', enum: ['EUR', 'USD', 'GBP'] },
  age: whole(0, 150),
  quantity: whole(1, 1000),
  priority: whole(1, 5),
  price: { type: 'number', minimum: 0 },
  score: { type: 'number', minimum: 0, maximum: 1 },
  active: { type: 'boolean' },
  newsletter: { type: 'boolean' },
  tags: { type: 'array', items: text(1, 20), maxItems: 10 },
  notes: text(0, 500),
  reference: text(1, 64),
})

export const listedSchema = object({
  query: { type: 'string', minLength: 1, maxLength: 200, description: 'What to look for' },
  limit: { type: 'integer', minimum: 1, maximum: 100, description: 'How many answers at most' },
  kind: { type: 'string', enum: ['file', 'folder', 'link'], description: 'Which kind of entry' },
  deep: { type: 'boolean', description: 'Whether to look into folders' },
})

export const listedNames = Array.from({ length: 200 }, (_, index) => `tool_${String(index).padStart(3, '0')}`)
export const listedDescription = name => `Looks for entries by a query and returns the best of them (${name})`

/** What `echo` and `form20` answer, given their arguments. */
export const echo = ({ text }) => text
export const form20 = form => `${form.name} ${Object.keys(form).length}`

/** The tools as `tools/list` shows them: `tools` is echo and form20, `list` the 200. */
export function plainTools(mode) {
  if (mode === 'list') {
    return listedNames.map(name => ({ name, description: listedDescription(name), inputSchema: listedSchema }))
  }
  return [
    { name: 'echo', description: 'Echoes the text', inputSchema: echoSchema },
    { name: 'form20', description: 'Takes a form of 20 properties', inputSchema: form20Schema },
  ]
}
