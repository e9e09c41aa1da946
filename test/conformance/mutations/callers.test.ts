/** E12-6 for clients and hosts: whoever has one fault fails at least the scenario that is about it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { playSteps } from '../../../examples/everything/steps.ts'
import {
  type ClientTarget,
  clientScenarios,
  hostScenarios,
  judgeClient,
  judgeHost,
  type Report,
  type Told,
} from '../../../src/conformance/index.ts'
import { playHost } from '../host-driver.ts'
import { clientFaults, type Mutation } from './client-faults.ts'
import { hostFaults } from './host-faults.ts'
import { faultySignIn, type SignInMutation, signInFaults } from './sign-in-faults.ts'
import { faulty } from './wrapping.ts'

async function judged({ caught, fault, revision = '2025-11-25', carrier = 'stdio' }: Mutation, isHost: boolean): Promise<Report> {
  const all = isHost ? hostScenarios : clientScenarios
  const scenarios = all.filter(({ id }) => id === caught)
  const options = { revisions: [revision], carriers: [carrier], scenarios }
  const broken = faulty(fault)
  if (isHost) return judgeHost((target, told) => playHost(target, told, broken), options)
  const client = (target: ClientTarget, { version, context, signal }: Told) => playSteps(target, version, context, signal, broken)
  return judgeClient(client, options)
}

/** At the newest wire over HTTP, where all of them can be seen. */
const signInCell = { revision: '2026-07-28', carrier: 'http' } as const

function judgedSigningIn({ caught, signIn }: SignInMutation): Promise<Report> {
  const scenarios = clientScenarios.filter(({ id }) => id === caught)
  const client = (target: ClientTarget, { version, context, signal }: Told) => {
    const way = context.answers?.signIn
    return playSteps(target, version, context, signal, way === undefined ? {} : faultySignIn(signIn, way))
  }
  return judgeClient(client, { revisions: [signInCell.revision], carriers: [signInCell.carrier], scenarios })
}

function failures({ results }: Report): readonly string[] {
  return results.filter(({ status }) => status === 'failed').map(({ test_id }) => test_id)
}

const page = fileURLToPath(new URL('../../../docs/conformance-client-mutations.md', import.meta.url))

function rows(role: string, faults: readonly Pick<Mutation, 'says' | 'caught' | 'revision' | 'carrier'>[]): string {
  const lines = faults.map(
    ({ says, caught, revision = '2025-11-25', carrier = 'stdio' }) => `| ${says} | ${revision}, ${carrier} | \`${caught}\` |`,
  )
  return [`## A ${role} that`, '', '| has this fault | tried at | is caught by |', '| --- | --- | --- |', ...lines, ''].join('\n')
}

function pageOf(): string {
  return [
    '# Clients and hosts with one fault',
    '',
    'Each line is one behaviour of our own client or host that is broken on purpose, by hands between it and its connection; the scenario beside',
    'it fails then, and passes without. `npm test` tries each one. This file is written by',
    '`VIVARIUM_WRITE=1 npx vitest run test/conformance/mutations/callers.test.ts`.',
    '',
    `${clientFaults.length + signInFaults.length} faults of clients, ${hostFaults.length} of hosts.`,
    '',
    rows('client', [...clientFaults, ...signInFaults.map(one => ({ ...one, ...signInCell }))]),
    rows('host', hostFaults),
  ].join('\n')
}

test('E12-6: what catches them is written down', () => {
  if (process.env['VIVARIUM_WRITE'] !== undefined) writeFileSync(page, pageOf())
  const says = 'Write it anew: VIVARIUM_WRITE=1 npx vitest run test/conformance/mutations/callers.test.ts'
  // How tables are aligned is the formatter's matter.
  const bare = (text: string): string => text.replace(/ +/g, ' ').replace(/-{3,}/g, '---')
  expect(bare(readFileSync(page, 'utf8')), says).toBe(bare(pageOf()))
})

describe('E12-6: a client that', () => {
  test.each(clientFaults.map(mutation => [mutation.says, mutation] as const))('%s is caught', async (_, mutation) => {
    const report = await judged(mutation, false)
    expect(failures(report), JSON.stringify(report.results, undefined, 1)).toContain(mutation.caught)
  })
})

describe('E12-6: a client that signs in and', () => {
  test.each(signInFaults.map(mutation => [mutation.says, mutation] as const))('%s is caught', async (_, mutation) => {
    const report = await judgedSigningIn(mutation)
    expect(failures(report), JSON.stringify(report.results, undefined, 1)).toContain(mutation.caught)
  })
})

describe('E12-6: a host that', () => {
  test.each(hostFaults.map(mutation => [mutation.says, mutation] as const))('%s is caught', async (_, mutation) => {
    const report = await judged(mutation, true)
    expect(failures(report), JSON.stringify(report.results, undefined, 1)).toContain(mutation.caught)
  })
})
