// Keeps pages alive, sends forms without leaving the page, and has keys. Everything works without it.
(() => {
  'use strict';

  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- Putting a newer page in place of an older one, part by part.

  const typed = new WeakSet();
  document.addEventListener('input', event => typed.add(event.target));

  /** The name of a node among its siblings, if it has one. */
  const nameOf = node => (node.nodeType === 1 ? node.id || node.dataset.key || null : null);

  /** What a person has begun to write or has unfolded is theirs. */
  const isTheirs = node => node === document.activeElement || typed.has(node);

  const morph = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh.cloneNode(true));
    if (old.nodeType !== 1) {
      old.nodeValue = fresh.nodeValue;
      return;
    }
    // Words that came since the page was made are not taken back.
    if (old.id === 'stream' && Number(old.dataset.seq) > Number(fresh.dataset.seq)) return;
    const unfolds = old.nodeName === 'DETAILS';
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(unfolds && name === 'open')) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (unfolds && name === 'open') continue;
      if (name === 'value' && isTheirs(old)) continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (['TEXTAREA', 'SELECT'].includes(old.nodeName)) {
      if (!isTheirs(old) && old.nodeName === 'TEXTAREA') old.value = fresh.textContent;
      return;
    }
    morphChildren(old, fresh);
  };

  const morphChildren = (old, fresh) => {
    const named = new Map();
    for (const child of old.childNodes) if (nameOf(child)) named.set(nameOf(child), child);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const name = nameOf(next);
      let match = name ? named.get(name) : at && !nameOf(at) && at.nodeName === next.nodeName ? at : null;
      if (match && match.parentNode !== old) match = null;
      if (!match) {
        old.insertBefore(next.cloneNode(true), at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      morph(match, next);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  /** Shows the live parts of another version of this page. */
  const show = text => {
    const fresh = new DOMParser().parseFromString(text, 'text/html');
    for (const part of $$('[data-live]')) {
      const next = part.id && fresh.getElementById(part.id);
      if (!next) continue;
      const sticks = part.hasAttribute('data-stick') && part.scrollHeight - part.scrollTop - part.clientHeight < 40;
      morph(part, next);
      if (sticks) part.scrollTop = part.scrollHeight;
    }
    tell();
    markRow();
    return fresh;
  };

  let looking = false;
  let lookAgain = false;
  let lookedAt = 0;
  /** Looks at the page again, at most twice a second and one at a time. */
  const look = async () => {
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    try {
      const wait = 450 - (Date.now() - lookedAt);
      if (wait > 0) await new Promise(done => setTimeout(done, wait));
      lookedAt = Date.now();
      lookAgain = false;
      const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
      if (response.ok) show(await response.text());
      else if (response.status === 401) location.reload();
    } catch {
      // The daemon is away; the stream or the clock will say when it is back.
    } finally {
      looking = false;
      if (lookAgain) look();
    }
  };

  // ---- What makes the page look again.

  const sign = $('#live');
  const state = (word, text) => {
    if (!sign || sign.dataset.state === word) return;
    sign.dataset.state = word;
    sign.textContent = text;
    sign.hidden = word === 'over';
  };

  const KINDS = ['accepted', 'started', 'event', 'suspended', 'asked', 'answered', 'steered', 'cancelling', 'attempted', 'note', 'finished', 'run', 'gone', 'reset', 'message'];
  const where = document.body.dataset.stream;
  let source = null;
  let over = false;
  let last = 0;

  /** A part of what the agent says goes straight to its place. */
  const heard = event => {
    if (event.lastEventId) last = event.lastEventId;
    if (event.type === 'event') {
      try {
        const record = JSON.parse(event.data);
        const told = record.data.event;
        if (told.type === 'assistant_delta') {
          const stream = $('#stream');
          if (!stream) return look();
          if (Number(event.lastEventId || record.seq) <= Number(stream.dataset.seq)) return;
          const box = stream.closest('[data-stick]');
          stream.append(told.text);
          stream.dataset.seq = event.lastEventId || record.seq;
          if (box) box.scrollTop = box.scrollHeight;
          return;
        }
      } catch {
        // Whatever it was, the page knows better.
      }
    }
    look();
  };

  const listen = () => {
    if (!where || source || over) return;
    const address = last ? where.replace(/after=\d+/, `after=${last}`) : where;
    source = new EventSource(address);
    source.addEventListener('open', () => {
      if (sign && sign.dataset.state === 'reconnecting') look();
      state('live', 'live');
    });
    source.addEventListener('error', () => {
      state('reconnecting', 'reconnecting…');
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(listen, 1500);
      }
    });
    source.addEventListener('end', () => {
      over = true;
      source.close();
      source = null;
      look();
      state('over', '');
    });
    for (const kind of KINDS) source.addEventListener(kind, heard);
  };

  const quiet = () => {
    if (source) source.close();
    source = null;
  };

  // A page that nobody sees holds no connection: browsers have few.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return quiet();
    listen();
    if (where || document.body.dataset.poll) look();
  });
  addEventListener('pagehide', quiet);
  listen();

  const every = Number(document.body.dataset.poll);
  if (every) {
    state('live', 'live');
    setInterval(() => {
      if (!document.hidden && !$('dialog[open]')) look();
    }, every);
  }

  // ---- Times.

  const words = seconds => {
    if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${String(Math.floor(seconds % 60)).padStart(2, '0')}s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${String(Math.floor((seconds / 60) % 60)).padStart(2, '0')}m`;
    return `${Math.floor(seconds / 86400)}d ${Math.floor((seconds / 3600) % 24)}h`;
  };
  const ago = seconds => {
    if (seconds < 5) return 'just now';
    if (seconds < 60) return `${Math.floor(seconds)}s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ago`;
    return `${Math.floor(seconds / 86400)}d ago`;
  };
  const tell = () => {
    const now = Date.now();
    for (const time of $$('time[data-ago], time[data-since], time[data-until]')) {
      const seconds = (now - Date.parse(time.dateTime)) / 1000;
      let text;
      if (time.hasAttribute('data-since')) text = words(seconds);
      else if (time.hasAttribute('data-until')) text = seconds >= 0 ? 'any moment' : `in ${words(-seconds)}`;
      else if (seconds < 2592000) text = ago(seconds);
      if (text && time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(tell, 1000);
  tell();

  // ---- Forms.

  const toast = (text, good) => {
    const note = document.createElement('div');
    note.className = good ? 'toast good' : 'toast';
    note.textContent = text;
    $('#toasts').append(note);
    setTimeout(() => note.remove(), 7000);
  };

  /** Asks before something is done; resolves to whether it is to be done. */
  const sure = text => {
    const dialog = $('#sure');
    $('#sure-text').textContent = text;
    dialog.returnValue = 'no';
    dialog.showModal();
    $('button[value="yes"]', dialog).focus();
    return new Promise(done => dialog.addEventListener('close', () => done(dialog.returnValue === 'yes'), { once: true }));
  };

  const isJson = text => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };

  const send = async (form, button) => {
    if (form.dataset.confirm && !(await sure(form.dataset.confirm))) return;
    for (const field of $$('textarea[data-json]', form)) {
      const fine = !field.value.trim() || isJson(field.value);
      field.setAttribute('aria-invalid', String(!fine));
      if (!fine) {
        field.focus();
        return toast('That is not JSON yet.');
      }
    }
    const body = new URLSearchParams(new FormData(form));
    if (button && button.name) body.set(button.name, button.value);
    if (button) button.setAttribute('aria-busy', 'true');
    try {
      // Not `form.action`: a field of the form may have that name.
      const response = await fetch(form.getAttribute('action'), { method: 'POST', body, headers: { Accept: 'text/html' } });
      const text = await response.text();
      if (!response.ok) {
        const problem = new DOMParser().parseFromString(text, 'text/html').querySelector('[data-problem]');
        toast(problem ? problem.textContent : `The daemon answered ${response.status}.`);
        look();
        return;
      }
      const there = new URL(response.url);
      for (const field of $$('textarea, input', form)) typed.delete(field);
      if (there.pathname === location.pathname && there.search === location.search) {
        if (form.hasAttribute('data-reset')) form.reset();
        show(text);
      } else {
        location.assign(response.url);
      }
    } catch {
      toast('The daemon does not answer. Nothing was lost; try again when it is back.');
    } finally {
      if (button) button.removeAttribute('aria-busy');
    }
  };

  document.addEventListener('submit', event => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.hasAttribute('data-live-form')) return;
    event.preventDefault();
    send(form, event.submitter);
  });

  // ---- The editor.

  const number = area => {
    const lines = $('[data-lines]', area.parentElement);
    const count = area.value.split('\n').length;
    if (lines.dataset.count !== String(count)) {
      lines.dataset.count = String(count);
      lines.textContent = Array.from({ length: count }, (_, at) => at + 1).join('\n');
    }
    lines.scrollTop = area.scrollTop;
  };
  for (const area of $$('textarea[data-code]')) {
    area.addEventListener('input', () => number(area));
    area.addEventListener('scroll', () => number(area));
    area.addEventListener('keydown', event => {
      // Escape first, so that Tab leaves the editor for those who need it to.
      if (event.key === 'Escape') area.dataset.leave = '1';
      else if (event.key === 'Tab' && !event.shiftKey && !area.dataset.leave) {
        event.preventDefault();
        area.setRangeText('  ', area.selectionStart, area.selectionEnd, 'end');
        area.dispatchEvent(new Event('input', { bubbles: true }));
      } else if (event.key !== 'Tab') delete area.dataset.leave;
    });
    number(area);
  }
  document.addEventListener('keydown', event => {
    const area = event.target.closest?.('textarea[data-submit]');
    if (area && event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      area.form.requestSubmit($('button.primary', area.form) || undefined);
    }
  });

  // ---- Keys.

  let row = null;
  const rows = () => $$('[data-row]');
  const markRow = () => {
    for (const one of rows()) one.classList.toggle('at', one.dataset.key === row);
  };
  const step = by => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex(one => one.dataset.key === row);
    const next = all[Math.min(all.length - 1, Math.max(0, at + by))] || all[0];
    row = next.dataset.key;
    markRow();
    $('a', next)?.focus();
    next.scrollIntoView({ block: 'nearest' });
  };

  const decide = async which => {
    const buttons = $$(`[data-key-${which}]`);
    if (buttons.length !== 1) return;
    const tool = $('h3', buttons[0].closest('article'))?.textContent || 'this';
    if (await sure(`${which === 'approve' ? 'Approve' : 'Deny'} ${tool}?`)) send(buttons[0].form, buttons[0]);
  };

  let after = 0;
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest?.('input, textarea, select, dialog[open]')) {
      if (event.key === 'Escape') event.target.blur?.();
      return;
    }
    const going = Date.now() - after < 1200;
    after = 0;
    if (going) {
      const link = $$('[data-go]').find(one => one.dataset.go === event.key);
      if (link) {
        event.preventDefault();
        location.assign(link.href);
      }
      return;
    }
    const find = $('[data-find]');
    if (event.key === 'g') after = Date.now();
    else if (event.key === 'j') step(1);
    else if (event.key === 'k') step(-1);
    else if (event.key === 'a') decide('approve');
    else if (event.key === 'd') decide('deny');
    else if (event.key === '/' && find) {
      event.preventDefault();
      find.focus();
    } else if (event.key === '?') $('#keys').showModal();
  });

  document.addEventListener('click', event => {
    const target = event.target.closest?.('[data-help], [data-theme-toggle]');
    for (const menu of $$('details.menu[open]')) if (!menu.contains(event.target)) menu.open = false;
    if (!target) return;
    event.preventDefault();
    if (target.hasAttribute('data-help')) return $('#keys').showModal();
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try {
      localStorage.setItem('outrigger-theme', root.dataset.theme);
    } catch {
      // It holds until the page is left.
    }
  });

  for (const box of $$('[data-stick]')) box.scrollTop = box.scrollHeight;
})();
