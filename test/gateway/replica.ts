/** One of several gateways on one store, as a process: says its address, answers what it is told on standard input, ends with it. */
import { createGateway } from '../../src/gateway/index.ts'

const gateway = await createGateway({
  servers: { bank: process.env['UPSTREAM'] ?? '' },
  store: process.env['STORE'] ?? 'memory:',
  secret: 'an only secret of at least 32 characters',
  rules: [
    { name: 'once', tool: 'pay', dedupe: '5m' },
    { name: 'careful', tool: 'close', do: 'ask', by: 'operator', wait: '20s' },
  ],
  limits: { rates: false },
})
await gateway.ready()
const { url } = await gateway.listen()
console.log(url)

/** `approvals` says their ids in a line; `approve ID` and `refuse ID` whether that was of use. */
async function obey(line: string): Promise<unknown> {
  const [word, id = ''] = line.split(' ')
  if (word === 'approvals') return (await gateway.approvals()).map(each => each.id)
  if (word === 'approve') return gateway.approve(id)
  if (word === 'refuse') return gateway.refuse(id)
  if (word === 'audit') return gateway.audit.verify()
  return undefined
}

process.stdin.setEncoding('utf8').on('data', async (words: string) => {
  for (const line of words.trim().split('\n')) console.log(JSON.stringify(await obey(line).catch(String)))
})
process.stdin.on('end', () => void gateway.close().then(() => process.exit()))
