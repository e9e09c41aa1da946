/**
 * Takes secrets out of what an agent is about to say. Live hosts wait for this hook before they show an answer; all others have a tool.
 * Let the host fail closed (`hooks: { redactor: { after: { fail: 'closed' } } }`), or an answer goes out as it is when this server is down.
 */
import { createServer, type Server } from 'vivarium/server'
import { z } from 'zod'
import { kinds, type RedactOptions, redact } from './secrets.ts'

export function createRedactor(options: RedactOptions = {}): Server {
  const server = createServer({ name: 'redactor', version: '1.0.0' })
  const answers = server.featureSet('redactor.answers', { description: 'Removes secrets from answers before they are shown' })
  answers.afterInference(
    ({ assistantMessage }) => {
      const { text, redacted } = redact(assistantMessage, options)
      return redacted.length === 0 ? undefined : { modifiedResponse: text, metadata: { redacted } }
    },
    { blocking: true },
  )
  server.tool(
    'redact_text',
    {
      description: 'Removes secrets from a text: keys, tokens, passwords, card numbers, e-mail addresses',
      input: z.object({ text: z.string().max(1_000_000) }),
      output: z.object({ text: z.string(), redacted: z.array(z.object({ kind: z.enum(kinds), count: z.number() })) }),
      annotations: { readOnlyHint: true },
    },
    ({ text }) => {
      const { redacted, ...rest } = redact(text, options)
      return { ...rest, redacted: [...redacted] }
    },
  )
  return server
}
