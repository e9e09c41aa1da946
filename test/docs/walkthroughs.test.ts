import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Walkthrough } from './walkthrough.ts'

const root = join(import.meta.dirname, '../..')
/** Its commands install this package: what it says is compared with `package.json` instead. */
const installing = join('docs', 'start', 'install.md')
const pages = globSync(['docs/start/*.md', 'docs/tutorials/*.md'], { cwd: root }).filter(page => page !== installing)

describe('the walk-throughs in the documentation', () => {
  it.concurrent.each(pages)('%s prints what it shows, and is sound in types', { timeout: 240_000 }, async page => {
    await using walkthrough = new Walkthrough()
    await walkthrough.play(readFileSync(join(root, page), 'utf8'))
    expect(await walkthrough.typeErrors()).toBe('')
  })
})

describe('the page about installing', () => {
  const text = readFileSync(join(root, installing), 'utf8')
  const { exports, peerDependencies, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

  it('names every entry of the package', () => {
    const entries = Object.keys(exports).filter(name => !/json|\*/.test(name))
    expect(entries.filter(name => !text.includes(`\`vivarium/${name.slice(2)}\``))).toEqual([])
  })

  it('names every optional package, and the Node that is needed', () => {
    expect(Object.keys(peerDependencies).filter(name => !text.includes(`\`${name}\``))).toEqual([])
    expect(text).toContain(engines.node.replace('>=', ''))
  })
})
