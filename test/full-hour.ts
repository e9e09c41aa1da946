/**
 * Windows of quotas and budgets end at the full hour. A test that fills one in a moment would find it empty again if the hour struck meanwhile,
 * so the last seconds before it are waited out.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach } from 'vitest'

const hourMs = 3_600_000
const closeMs = 15_000

beforeEach(async () => {
  const leftMs = hourMs - (Date.now() % hourMs)
  if (leftMs < closeMs) await sleep(leftMs)
})
