"""A browser without a window: Debian's Chromium, driven by Selenium."""

import os
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.support_missing import lacks


def chromium():
    """Return a browser; the caller quits it."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        lacks("no Chromium here; type: sudo apt-get install -y chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    words = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    for word in words:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))
