import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { faultOfNode } from './required-node.ts'

it('names the Node that is needed, the same as package.json, and the one that is there', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  const needed = engines.node.replace('>=', '')
  expect(faultOfNode({ node: '20.20.2' })).toContain(`needs Node ${needed} or newer; this is 20.20.2`)
  expect(faultOfNode({ node: '22.17.9' })).toContain('22.17.9')
})

it('lets newer ones through, and runtimes that only say which Node they resemble', () => {
  for (const versions of [
    { node: '22.18.0' },
    { node: '24.0.0' },
    { node: '20.1.0', bun: '1.4.4' },
    { node: '20.1.0', deno: '2.9.6' },
    {},
  ])
    expect(faultOfNode(versions)).toBeUndefined()
})
