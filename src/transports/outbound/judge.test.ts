import { expect, it } from 'vitest'
import { judgeDestination } from './destination.ts'

it('finds nothing against a public address, whatever its name will lead to', () => {
  expect(judgeDestination('https://example.com/mcp')).toMatchObject({ host: 'example.com', secure: true, loopback: false })
  expect(judgeDestination('https://93.184.215.14/')).toMatchObject({ host: '93.184.215.14' })
})

it.each([
  'https://10.1.2.3/',
  'https://[fd00::1]/',
  'https://169.254.169.254/latest/meta-data',
  'https://0x7f.1/',
  'https://localhost/',
  'http://example.com/',
  'ftp://example.com/',
  'nothing',
])('%s is refused without a question to the network', url => {
  expect(judgeDestination(url)).toMatchObject({ name: 'OutboundError', kind: 'refused' })
})

it('lets through what is allowed by name', () => {
  expect(judgeDestination('http://127.0.0.1:8080/', { loopback: true })).toMatchObject({ loopback: true })
  expect(judgeDestination('https://10.1.2.3/', { allow: ['10.1.0.0/16'] })).toMatchObject({ host: '10.1.2.3' })
  expect(judgeDestination('https://10.2.2.3/', { allow: ['10.1.0.0/16'] })).toMatchObject({ kind: 'refused' })
})
