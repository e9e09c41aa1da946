/**
 * Gathers what the tests that passed have proved. After a run of every file it fails where a statement lacks a proof for a role that
 * it binds, and keeps what it found for `npm run statements`; runs of some files say nothing.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Reporter, TestModule, Vitest } from 'vitest/node'
import { readGroups } from '../statements.ts'
import { listFiles, root } from './files.ts'
import { claimsOf, gapsIn, needingSchemas, type Proof, readBonds } from './proofs.ts'

export const proofsFile = join(root, '.cache', 'proofs.json')

export default class ProofsReporter implements Reporter {
  #named = false

  onInit({ config }: Vitest): void {
    this.#named = config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const ran = new Set(modules.map(pathOf))
    const all = listFiles(['src', 'test', 'scripts', 'examples'], /\.test\.ts$/)
    if (this.#named || all.some(path => !ran.has(path))) return
    const proofs = modules.flatMap(proofsIn)
    const unique = [...new Map(proofs.map(proof => [JSON.stringify(proof), proof])).values()]
    mkdirSync(join(root, '.cache'), { recursive: true })
    writeFileSync(proofsFile, JSON.stringify({ at: new Date().toISOString(), proofs: unique }))
    const text = readFileSync(join(root, 'test', 'statements.txt'), 'utf8')
    const apart = process.env['VIVARIUM_SCHEMAS'] === undefined ? needingSchemas(text) : new Set<string>()
    const ids = readGroups(text)
      .filter(({ now }) => now)
      .flatMap(group => group.ids)
      .filter(id => !apart.has(id))
    const gaps = gapsIn(ids, readBonds(text), unique)
    for (const { id, role } of gaps)
      console.error(`✗ ${id} has no test that passed${role === undefined ? '' : ` for the ${role}`}`)
    console.log(
      `statements: ${ids.length - new Set(gaps.map(({ id }) => id)).size} of ${ids.length} proved by tests that passed\n`,
    )
    if (gaps.length > 0) process.exitCode = 1
  }
}

function pathOf({ moduleId }: TestModule): string {
  return relative(root, moduleId).replaceAll('\\', '/')
}

function proofsIn(module: TestModule): readonly Proof[] {
  const path = pathOf(module)
  return [...module.children.allTests('passed')].flatMap(test => claimsOf(path, test.fullName, test.meta().proves))
}
