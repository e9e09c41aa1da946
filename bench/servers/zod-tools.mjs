/** The schemas of `tools.mjs` as Zod objects: same properties, same bounds. Separate, because importing Zod costs start-up time. */
import { z } from 'zod'

const text = (min, max) => z.string().min(min).max(max)
const whole = (min, max) => z.number().int().min(min).max(max)

export const echoInput = z.object({ text: z.string() })

export const form20Input = z.object({
  name: text(1, 200),
  email: text(3, 200),
  phone: text(3, 30),
  street: text(1, 100),
  city: text(1, 100),
  zip: text(3, 12),
  country: text(2, 2),
  language: z.enum(['de', 'en', 'fr', 'es']),
  plan: z.enum(['free', 'pro', 'team']),
  currency: z.enum(['EUR', 'USD', 'GBP']),
  age: whole(0, 150),
  quantity: whole(1, 1000),
  priority: whole(1, 5),
  price: z.number().min(0),
  score: z.number().min(0).max(1),
  active: z.boolean(),
  newsletter: z.boolean(),
  tags: z.array(text(1, 20)).max(10),
  notes: text(0, 500),
  reference: text(1, 64),
})

export const listedInput = z.object({
  query: text(1, 200).describe('What to look for'),
  limit: whole(1, 100).describe('How many answers at most'),
  kind: z.enum(['file', 'folder', 'link']).describe('Which kind of entry'),
  deep: z.boolean().describe('Whether to look into folders'),
})

/** JSON Schema of a Zod object, for libraries that ask the author to convert. */
export const toJsonSchema = schema => z.toJSONSchema(schema)
