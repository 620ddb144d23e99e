// The dashboard in a real browser: each step does what a person does and says on standard output what it saw.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { mkdirSync } from 'node:fs';

const require = createRequire(process.env.OUTRIGGER_NPM_PLAYWRIGHT_CORE + '/node_modules/');
const { chromium } = require('playwright-core');
const [link, shots] = process.argv.slice(2);
const base = new URL(link).origin;
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(20000);
const troubles = [];
page.on('pageerror', error => troubles.push(error.message));
page.on('console', message => {
  // A daemon that is being restarted cannot be reached; the page says so itself.
  if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE/.test(message.text())) troubles.push(message.text());
});
const say = (step, more = {}) => console.log(JSON.stringify({ step, ...more }));
const check = (truth, what) => { if (!truth) throw new Error(what); };
const shot = name => page.screenshot({ path: `${shots}/${name}.png` });
// What the test beside us has to do in between, such as restarting the daemon.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const wait_for_word = async word => { const { value } = await lines.next(); check(value === word, `waited for ${word}, got ${value}`); };
const phase = async word => page.locator('h1, .badge').filter({ hasText: word }).first().waitFor();

const steps = {
  async link_lets_one_browser_in() {
    await page.goto(link);
    await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
    check(page.url() === base + '/', `it ends at ${page.url()}`);
    const stranger = await browser.newContext();
    const other = await stranger.newPage();
    const response = await other.goto(link);
    check(response.status() === 401 || response.status() === 403 || response.status() === 410, `a used link gave ${response.status()}`);
    await stranger.close();
    await shot('runs');
  },
  async script_runs_and_a_call_is_answered() {
    await page.goto(base + '/playground');
    await page.getByRole('textbox', { name: 'Script', exact: true }).fill("const who = approve('deploy'); `deployed, approved by ${who}`;");
    await page.getByLabel('Names that you answer yourself').fill('approve');
    await page.getByRole('button', { name: /^Run/ }).click();
    await page.getByRole('article', { name: /approve/ }).waitFor();
    await page.getByText(/snapshot \d/).first().waitFor();
    await shot('playground');
    await page.getByLabel(/The result/).fill('"Ada"');
    await page.getByRole('button', { name: 'Answer', exact: true }).click();
    await page.getByText('deployed, approved by Ada').first().waitFor();
    await page.getByRole('link', { name: /Open/ }).click();
    await page.getByText('verified').first().waitFor();
    await shot('script');
  },
  async tool_is_approved(run) {
    await page.goto(`${base}/runs/${run}`);
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await phase('completed');
    await page.getByText('answer 42').first().waitFor();
    await shot('approved');
  },
  async call_is_approved_with_other_arguments(run) {
    await page.goto(`${base}/runs/${run}`);
    await page.getByText('Approve with other arguments').click();
    const box = page.getByLabel('Arguments, as JSON');
    await box.fill('[41');
    await page.getByRole('button', { name: 'Approve these' }).click();
    await box.fill('[41]');
    await page.getByRole('button', { name: 'Approve these' }).click();
    await phase('completed');
    await page.getByText('got 41').first().waitFor();
    await shot('edited');
  },
  async keyboard_is_enough(run) {
    await page.goto(base + '/');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/runs\//);
    await page.goto(`${base}/runs/${run}`);
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await page.keyboard.press('a');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Enter');
    await phase('completed');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: /keys/i }).waitFor();
    await shot('keys');
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await page.getByRole('heading', { name: 'Playground', exact: true }).waitFor();
  },
  async without_scripts_forms_do_the_same(run) {
    const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() });
    const still = await plain.newPage();
    await still.goto(`${base}/runs/${run}`);
    await still.getByRole('button', { name: 'Approve', exact: true }).click();
    await still.getByText('answered').first().waitFor();
    await still.goto(base + '/playground');
    await still.getByRole('textbox', { name: 'Script', exact: true }).fill("`plain ${ask('what')}`");
    await still.getByLabel('Names that you answer yourself').fill('ask');
    await still.getByRole('button', { name: /^Run/ }).click();
    check(/run=/.test(still.url()), `it is at ${still.url()}`);
    for (let tries = 0; tries < 50 && !await still.getByLabel(/The result/).isVisible(); tries++) await still.reload();
    await still.getByLabel(/The result/).fill('"paper"');
    await still.getByRole('button', { name: 'Answer', exact: true }).click();
    for (let tries = 0; tries < 50 && !await still.getByText('plain paper').first().isVisible(); tries++) await still.reload();
    await still.screenshot({ path: `${shots}/without-scripts.png` });
    check(await still.getByText('plain paper').first().isVisible(), 'the script never ended');
    await plain.close();
  },
  async changes_of_a_run_are_shown(run) {
    await page.goto(`${base}/runs/${run}`);
    await page.getByText('a.txt').first().waitFor();
    await page.getByText('after', { exact: true }).first().waitFor();
    await page.getByText('before', { exact: true }).first().waitFor();
    await shot('diff');
  },
  async agent_is_talked_to() {
    await page.goto(base + '/agents');
    await shot('agents');
    await page.goto(base + '/chat?backend=mock');
    await page.getByRole('textbox', { name: 'Message' }).fill('good morning');
    await page.getByRole('button', { name: /^Send/ }).click();
    await page.getByRole('region', { name: 'Conversation' }).getByText('good morning').first().waitFor();
    await phase('completed');
    await shot('chat');
  },
  async process_is_looked_at_and_stopped(name) {
    await page.goto(base + '/sidecars');
    await page.getByRole('link', { name }).first().click();
    await page.getByText('ready').first().waitFor();
    await page.getByText('it has begun').first().waitFor();
    await shot('sidecar');
    await page.getByRole('button', { name: `Stop ${name}` }).click();
    await page.getByRole('button', { name: 'Yes' }).click();
    await page.getByRole('heading', { name: 'Sidecars', exact: true }).waitFor();
  },
  async tool_is_denied_from_the_list() {
    await page.goto(base + '/');
    await page.getByRole('button', { name: /^Deny/ }).first().click();
    await page.getByRole('button', { name: /^Deny/ }).first().waitFor({ state: 'detached' });
    await shot('denied');
  },
  async agent_is_steered_and_cancelled(run) {
    await page.goto(`${base}/runs/${run}`);
    await phase('running');
    await page.getByPlaceholder(/Say something to the agent/).fill('hurry up');
    await page.getByRole('button', { name: 'Steer' }).click();
    await page.getByText('hurry up').first().waitFor();
    await shot('steered');
    page.on('dialog', dialog => dialog.accept());
    await page.getByRole('button', { name: 'Cancel' }).first().click();
    const sure = page.getByRole('button', { name: 'Yes' });
    if (await sure.isVisible().catch(() => false)) await sure.click();
    await phase('cancelled');
    await shot('cancelled');
  },
  async page_reconnects_after_a_restart(run) {
    await page.goto(`${base}/runs/${run}`);
    await page.getByText('live', { exact: true }).waitFor();
    say('restart');
    await wait_for_word('restarted');
    await page.getByText('live', { exact: true }).waitFor();
    say('answer');
    await wait_for_word('answered');
    // Nobody touches the page: what happens under the new daemon appears by itself.
    await phase('completed');
    await shot('reconnected');
  },
  async panel_action_of_an_extension(key) {
    await page.goto(base + '/extensions');
    await page.getByRole('link', { name: new RegExp(key) }).first().click();
    await page.getByText('Auto-reply').first().waitFor();
    await page.getByRole('button', { name: 'Pause or go on' }).click();
    await page.getByText(/paused/i).first().waitFor();
    await shot('extension');
    await page.getByRole('button', { name: /^revoke messages.send/i }).click();
    await page.getByRole('button', { name: /^grant messages.send/i }).waitFor();
    await shot('revoked');
  },
  async pages_fit_a_phone_and_the_dark() {
    for (const scheme of ['light', 'dark']) {
      const phone = await browser.newContext({ viewport: { width: 360, height: 780 }, colorScheme: scheme, storageState: await context.storageState() });
      const small = await phone.newPage();
      for (const path of ['/', '/playground', '/agents', '/sidecars', '/extensions', '/runs/new', '/chat']) {
        await small.goto(base + path);
        const wide = await small.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        check(wide <= 0, `${path} is ${wide} px wider than a phone`);
        const unnamed = await small.evaluate(() => [...document.querySelectorAll('button, a[href], input:not([type=hidden]), select, textarea')]
          .filter(it => it.checkVisibility() && !(it.getAttribute('aria-label') || it.textContent.trim() || it.labels?.length || it.title || it.placeholder)).map(it => it.outerHTML.slice(0, 120)));
        check(unnamed.length === 0, `${path} has something without a name: ${unnamed}`);
        await small.screenshot({ path: `${shots}/phone-${scheme}${path.replaceAll('/', '-')}.png` });
      }
      await phone.close();
    }
  },
};

try {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) break;
    const [step, ...args] = value.split(' ');
    await steps[step](...args);
    check(troubles.length === 0, `the page complains: ${troubles}`);
    say('done', { of: step });
  }
} catch (error) {
  await shot('failure').catch(() => {});
  say('failed', { why: String(error.stack ?? error) });
} finally {
  await browser.close();
}
