import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memoryStore, put } from '../../src/stores/index.ts'
import { type CampaignOptions, type CampaignReport, runCampaign } from './campaign.ts'
import { failpoints, nameOf, type Phase, withFailpoint } from './failpoints.ts'
import { fateOf } from './plan.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vivarium-crash-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let campaigns = 0
function campaign(kills: number, more: Partial<CampaignOptions> = {}): Promise<CampaignReport> {
  const own = mkdtempSync(join(folder, `${++campaigns}-`))
  return runCampaign({ store: 'sqlite', folder: own, seed: 7, kills, ...more })
}

const kindsOf = ({ findings }: CampaignReport): Set<string> => new Set(findings.map(({ kind }) => kind))

describe.concurrent('kill -9', () => {
  it('loses nothing that was acknowledged, does nothing twice and leaves nothing half done', async () => {
    const { findings, deaths, ends, restarts } = await campaign(10)
    expect(findings).toEqual([])
    expect([...deaths.values()].reduce((sum, count) => sum + count, 0)).toBe(10)
    expect(ends.get('calls acknowledged')).toBeGreaterThan(0)
    expect(restarts.length).toBeGreaterThan(2)
  }, 180_000)

  it('is seen to do things twice where calls are repeated under other keys', async () => {
    // After the effect, before anybody is told of it.
    const fate = { kind: 'failpoint', death: { name: 'settle', phase: 'before', nth: 1 } } as const
    expect(kindsOf(await campaign(2, { wrong: 'keys', fate, onlyCalls: true }))).toContain('double')
  }, 120_000)

  it('is seen to lose things where the store says "written" too early', async () => {
    // When some were answered already.
    const fate = { kind: 'failpoint', death: { name: 'settle', phase: 'after', nth: 8 } } as const
    expect(kindsOf(await campaign(2, { wrong: 'store', fate, onlyCalls: true }))).toContain('lost')
  }, 120_000)
})

describe('a failpoint', () => {
  const claim = put('done/me/k', JSON.stringify({ status: 'running' }))

  it.each<[Phase, boolean]>([
    ['before', false],
    ['amid', true],
    ['after', true],
  ])('%s a write lets only the write before it through, or this one too', async (phase, written) => {
    const memory = memoryStore()
    const died = new Promise<void>(die => {
      const store = withFailpoint(memory, { name: 'claim', phase, nth: 2 }, die)
      void store.commit([put('runner/me', '')]).then(async () => {
        await store.commit([claim])
        await store.commit([put('done/me/other', claim.op === 'put' ? claim.value : '')])
      })
    })
    await died
    expect(await memory.get('done/me/k')).toBeDefined()
    expect((await memory.get('done/me/other')) !== undefined).toBe(written)
  })

  it('is named by what the write writes', () => {
    expect(nameOf([claim])).toBe('claim')
    expect(nameOf([put('saga/unit/all/1', '{"status":"open"}'), put('saga/unfinished/all/1', '')])).toBe('saga-begin')
    expect(nameOf([{ op: 'check', key: 'unit-lease/a/1', version: 1 }, put('step/a/1/1', '{"status":"compensated"}')])).toBe(
      'undo',
    )
  })
})

describe('the fates of a seed', () => {
  it('are the same each time, and others under another seed', () => {
    const fates = (seed: number) => Array.from({ length: 50 }, (_, index) => fateOf(seed, 'sqlite', index))
    expect(fates(1)).toEqual(fates(1))
    expect(fates(1)).not.toEqual(fates(2))
  })

  it('lead to every failpoint in each phase', () => {
    const met = new Set<string>()
    for (let index = 0; index < failpoints.length * 5; index++) {
      const fate = fateOf(1, 'sqlite', index)
      if (fate.kind === 'failpoint') met.add(`${fate.death.name} ${fate.death.phase}`)
    }
    expect(met.size).toBe(failpoints.length * 3)
  })
})
