/**
 * Serves webhooks on stdio, and takes them on loopback: `node server.ts [FILE]`, or with WEBHOOK_FILE set. WEBHOOK_PORT (7430), and
 * WEBHOOK_GITHUB_SECRET, WEBHOOK_GITLAB_SECRET, WEBHOOK_STRIPE_SECRET: a sender without a secret is not listened to.
 */
import { sources } from './signatures.ts'
import { openWebhooks } from './webhook.ts'

const secrets = Object.fromEntries(
  sources.flatMap(source => {
    const secret = process.env[`WEBHOOK_${source.toUpperCase()}_SECRET`]
    return secret === undefined || secret === '' ? [] : [[source, secret]]
  }),
)
await using webhooks = await openWebhooks({
  file: process.argv[2] ?? process.env['WEBHOOK_FILE'] ?? 'webhook.db',
  port: Number(process.env['WEBHOOK_PORT'] ?? 7430),
  secrets,
})
console.error(`webhook: listening at ${webhooks.url} for ${Object.keys(secrets).join(', ') || 'no sender: set a secret'}`)
await webhooks.server.stdio()
