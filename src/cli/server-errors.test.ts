import { expect, test } from 'vitest'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { explainServerError } from './server-errors.ts'

test('a program that fails for a variable is told with the doctor, which knows what the program gets', () => {
  const ended = new ConnectionError('lost', 'The program has ended with exit code 1')
  const said = ['vivarium: SHOP_KEY is wrong', '  → Correct the file']
  expect(explainServerError(ended, { label: 'shop', said })).toMatchObject({
    message: 'SHOP_KEY is wrong',
    fix: 'Correct the file, or run vivarium doctor shop to see what is missing',
  })
  expect(explainServerError(ended, { label: 'shop', said: ['vivarium: shop.ts has no server', '  → Export it'] })).toMatchObject({
    fix: 'Export it',
  })
})
