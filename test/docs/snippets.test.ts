import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { scratch, writeProgram } from './program.ts'

describe('the programs in the documentation', () => {
  afterAll(() => rm(scratch, { recursive: true, force: true }))

  it.each([
    'README.md',
    'docs/server.md',
    'docs/client.md',
    'docs/testing.md',
    'docs/conformance.md',
    'docs/logging.md',
    'docs/coming-from-the-sdk.md',
    'docs/guide/compatibility.md',
    'docs/guide/confirmation.md',
    'docs/guide/cost.md',
    'docs/guide/permissions.md',
    'docs/guide/discovery.md',
    'docs/guide/errors.md',
    'docs/guide/events.md',
    'docs/guide/gateway.md',
    'docs/guide/host.md',
    'docs/guide/audit.md',
    'docs/guide/state-and-undo.md',
    'docs/guide/hardening.md',
    'docs/guide/idempotency.md',
    'docs/guide/record-and-replay.md',
    'docs/guide/live-server.md',
    'docs/guide/manifest.md',
    'docs/guide/intent.md',
    'docs/guide/media.md',
    'docs/guide/provenance.md',
    'docs/guide/data-references.md',
    'docs/guide/state.md',
    'docs/guide/stores.md',
    'docs/guide/streaming.md',
    'docs/guide/inbox.md',
    'docs/guide/policy.md',
    'docs/guide/transactions.md',
    'docs/guide/models.md',
    'docs/guide/replay.md',
  ])('%s runs to its end as one program', async page => {
    const file = await writeProgram(page)
    const { stderr } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      timeout: 30_000,
    })
    expect(stderr).not.toMatch(/Error/)
  })
})
